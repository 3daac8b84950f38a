import { readInt64, writeInt64, writeUint32 } from '../journal/int64';

/**
 * One entry of a plan (docs/design/journal.md#plan): little-endian, offset i64, length u32, prefix hash
 * u32. A plan is an index into the input file and contains none of its bytes.
 */
export const PLAN_ENTRY_BYTES = 16;

/** Where one request is in the input file, and the hash that groups it. */
export interface PlanEntry {
  /** Byte offset of the line in the input file: the request's identity. */
  readonly offset: number;
  /** Bytes of the line without its line end. */
  readonly length: number;
  /** FNV-32a of the system prompt, 0 if there is none. */
  readonly prefixHash: number;
}

/** Writes the 16 bytes of `entry` at byte `at` of `target`. */
export function encodePlanEntry(target: Buffer, at: number, entry: PlanEntry): void {
  writeInt64(target, entry.offset, at);
  writeUint32(target, entry.length, at + 8);
  writeUint32(target, entry.prefixHash, at + 12);
}

/** Entry number `index` of plan bytes. @throws RangeError outside the buffer */
export function decodePlanEntry(plan: Buffer, index: number): PlanEntry {
  const at = index * PLAN_ENTRY_BYTES;
  return {
    offset: readInt64(plan, at),
    length: plan.readUInt32LE(at + 8),
    prefixHash: plan.readUInt32LE(at + 12),
  };
}

/** The offset of entry number `index` of plan bytes, which must hold it. Makes no object. */
export function planEntryOffset(plan: Buffer, index: number): number {
  return readInt64(plan, index * PLAN_ENTRY_BYTES);
}
