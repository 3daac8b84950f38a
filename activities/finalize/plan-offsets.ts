import { NightshiftError, isNightshiftError } from '../../core/errors';
import { planKey } from '../../core/names/object-names';
import type { ModelMap } from '../../core/plan/model-map';
import { decodePlanEntry, PLAN_ENTRY_BYTES } from '../../core/plan/plan-entry';
import type { Range } from '../../core/range';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';
import { LineTally } from './line-tally';

const ENTRIES_PER_READ = 16 * 1024;

/** Ranges of one model's plan. */
export interface PlanPart {
  readonly safe: string;
  readonly ranges: readonly Range[];
}

/** Where the plans of a batch lie. */
export interface PlanPlace {
  readonly store: ObjectStore;
  readonly batchId: string;
  readonly map: ModelMap;
}

/** All of every plan. */
export function wholePlan(map: ModelMap): PlanPart[] {
  return Object.entries(map.entries).map(([safe, to]) => ({ safe, ranges: [{ from: 0, to }] }));
}

/** Offsets of the lines in these parts, ascending: 8 bytes a line. @throws plan_unreadable */
export async function plannedOffsets(
  place: PlanPlace,
  parts: readonly PlanPart[],
): Promise<Float64Array> {
  const offsets = new Float64Array(sizeOf(parts));
  let count = 0;
  await readPlans(place, parts, (plan, index) => {
    offsets[count++] = decodePlanEntry(plan, index).offset;
  });
  return offsets.sort();
}

/** All planned lines, in constant memory. @throws plan_unreadable */
export async function plannedLines(place: PlanPlace): Promise<LineTally> {
  const lines = new LineTally();
  await readPlans(place, wholePlan(place.map), (plan, index) => {
    lines.add(decodePlanEntry(plan, index).offset);
  });
  return lines;
}

/** Place of `offset` in ascending offsets, or -1. */
export function indexOfOffset(offsets: Float64Array, offset: number): number {
  let low = 0;
  let high = offsets.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((offsets[middle] ?? 0) < offset) low = middle + 1;
    else high = middle;
  }
  return offsets[low] === offset ? low : -1;
}

function sizeOf(parts: readonly PlanPart[]): number {
  const sizes = parts.flatMap(({ ranges }) => ranges.map(({ from, to }) => to - from));
  return sizes.reduce((sum, size) => sum + size, 0);
}

type VisitEntry = (plan: Buffer, index: number) => void;

async function readPlans(
  { store, batchId, map }: PlanPlace,
  parts: readonly PlanPart[],
  visit: VisitEntry,
): Promise<void> {
  for (const { safe, ranges } of parts) {
    if (ranges.length === 0) continue;
    const reader = await openPlan(store, planKey(batchId, map.nonce, safe), map.entries[safe]);
    try {
      for (const range of ranges) await readEntries(reader, range, visit);
    } finally {
      await reader.close();
    }
  }
}

async function openPlan(
  store: ObjectStore,
  key: string,
  entries: number | undefined,
): Promise<ObjectReader> {
  const reader = await store.open(key).catch((error: unknown) => {
    throw isNightshiftError(error, 'object_missing') ? unreadable(key, error) : error;
  });
  if (entries !== undefined && reader.size === entries * PLAN_ENTRY_BYTES) return reader;
  await reader.close();
  throw unreadable(key);
}

async function readEntries(reader: ObjectReader, { from, to }: Range, visit: VisitEntry) {
  const window = Buffer.allocUnsafe(PLAN_ENTRY_BYTES * Math.min(ENTRIES_PER_READ, to - from));
  for (let at = from; at < to; at += ENTRIES_PER_READ) {
    const count = Math.min(ENTRIES_PER_READ, to - at);
    const length = count * PLAN_ENTRY_BYTES;
    const plan = await reader.read(at * PLAN_ENTRY_BYTES, length, window);
    for (let index = 0; index < count; index++) visit(plan, index);
  }
}

function unreadable(key: string, cause?: unknown): NightshiftError {
  return new NightshiftError('plan_unreadable', `${key} is missing or has another size`, { cause });
}
