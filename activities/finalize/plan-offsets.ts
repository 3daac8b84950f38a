import { NightshiftError, isNightshiftError } from '../../core/errors';
import { planKey } from '../../core/names/object-names';
import type { ModelMap } from '../../core/plan/model-map';
import { PLAN_ENTRY_BYTES, planEntryOffset } from '../../core/plan/plan-entry';
import type { Range } from '../../core/range';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';
import { LineChecksum } from './line-checksum';

const ENTRIES_PER_READ = 16 * 1024;

/** Ranges of one model's plan. */
export interface PlanRanges {
  readonly safeModel: string;
  readonly ranges: readonly Range[];
}

/** The plans of a batch, and the store that they are read from. */
export interface BatchPlan {
  readonly store: ObjectStore;
  readonly batchId: string;
  readonly map: ModelMap;
}

/** All positions of all plans. */
export function wholePlan(map: ModelMap): PlanRanges[] {
  return Object.entries(map.entries).map(([safeModel, to]) => {
    return { safeModel, ranges: [{ from: 0, to }] };
  });
}

/** Offsets of the lines in these ranges, ascending, in 8 bytes per line. @throws plan_unreadable */
export async function plannedOffsets(
  plan: BatchPlan,
  models: readonly PlanRanges[],
): Promise<Float64Array> {
  const offsets = new Float64Array(sizeOf(models));
  let count = 0;
  await readPlans(plan, models, (entries, index) => {
    offsets[count++] = planEntryOffset(entries, index);
  });
  return offsets.sort();
}

/** The checksum of all planned lines, in constant memory. @throws plan_unreadable */
export async function plannedChecksum(plan: BatchPlan): Promise<LineChecksum> {
  const checksum = new LineChecksum();
  await readPlans(plan, wholePlan(plan.map), (entries, index) => {
    checksum.add(planEntryOffset(entries, index));
  });
  return checksum;
}

/** Index of `offset` in ascending offsets, or -1. */
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

function sizeOf(models: readonly PlanRanges[]): number {
  const sizes = models.flatMap(({ ranges }) => ranges.map(({ from, to }) => to - from));
  return sizes.reduce((sum, size) => sum + size, 0);
}

type VisitEntry = (entries: Buffer, index: number) => void;

async function readPlans(
  { store, batchId, map }: BatchPlan,
  models: readonly PlanRanges[],
  visit: VisitEntry,
): Promise<void> {
  for (const { safeModel, ranges } of models) {
    if (ranges.length === 0) continue;
    const key = planKey(batchId, map.nonce, safeModel);
    const reader = await openPlan(store, key, map.entries[safeModel]);
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
    const entries = await reader.read(at * PLAN_ENTRY_BYTES, length, window);
    for (let index = 0; index < count; index++) visit(entries, index);
  }
}

function unreadable(key: string, cause?: unknown): NightshiftError {
  return new NightshiftError('plan_unreadable', `${key} is missing or has another size`, { cause });
}
