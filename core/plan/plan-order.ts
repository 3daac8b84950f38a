import { PLAN_ENTRY_BYTES } from './plan-entry';

const HASH_AT = 12;
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/**
 * The order in which a model's lines are sent (execution §1): by prefix hash, so that requests which
 * share a prefix run back to back; input order inside equal hashes. Returns a new buffer, or `plan`
 * itself where it is already in order.
 */
export function sortPlan(plan: Buffer): Buffer {
  const count = plan.length / PLAN_ENTRY_BYTES;
  if (isOrdered(plan, count)) return plan;
  const order = orderOf(plan, count);
  const sorted = Buffer.allocUnsafe(plan.length);
  for (let i = 0; i < count; i++) {
    const from = (order[i] ?? 0) * PLAN_ENTRY_BYTES;
    plan.copy(sorted, i * PLAN_ENTRY_BYTES, from, from + PLAN_ENTRY_BYTES);
  }
  return sorted;
}

/**
 * Entry numbers in order of (hash, number). The pair is one 64-bit key, the hash in its upper half, so
 * that the engine's native sort does it without a comparator and equal hashes keep their order.
 */
function orderOf(plan: Buffer, count: number): Uint32Array {
  const keys = new BigUint64Array(count);
  const halves = new Uint32Array(keys.buffer);
  const low = LITTLE_ENDIAN ? 0 : 1;
  for (let i = 0; i < count; i++) {
    halves[2 * i + low] = i;
    halves[2 * i + 1 - low] = plan.readUInt32LE(i * PLAN_ENTRY_BYTES + HASH_AT);
  }
  keys.sort();
  return Uint32Array.from({ length: count }, (_, i) => halves[2 * i + low] ?? 0);
}

function isOrdered(plan: Buffer, count: number): boolean {
  for (let i = 1; i < count; i++) {
    const at = i * PLAN_ENTRY_BYTES + HASH_AT;
    if (plan.readUInt32LE(at - PLAN_ENTRY_BYTES) > plan.readUInt32LE(at)) return false;
  }
  return true;
}
