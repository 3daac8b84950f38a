import { GatewayError, isGatewayError } from '../../core/errors';
import type { Span } from '../../core/journal/coverage';
import { planKey } from '../../core/plan/keys';
import type { ModelMap } from '../../core/plan/model-map';
import { decodePlanEntry, PLAN_ENTRY_BYTES, type PlanEntry } from '../../core/plan/plan-entry';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';

const ENTRIES_PER_READ = 16 * 1024;

/** Ranges of one model's plan. */
export interface PlanPart {
  readonly safe: string;
  readonly ranges: readonly Span[];
}

/** Where the plans of a batch lie. */
export interface PlanPlace {
  readonly store: ObjectStore;
  readonly batchId: string;
  readonly map: ModelMap;
}

/** Lines by offset, ascending, in 12 bytes each. */
export interface PlannedLines {
  readonly offsets: Float64Array;
  readonly lengths: Uint32Array;
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
  for await (const entry of planEntries(place, parts)) offsets[count++] = entry.offset;
  return offsets.sort();
}

/** The same with the lengths, which takes a second pass over the plans. @throws plan_unreadable */
export async function plannedLines(
  place: PlanPlace,
  parts: readonly PlanPart[],
): Promise<PlannedLines> {
  const offsets = await plannedOffsets(place, parts);
  const lengths = new Uint32Array(offsets.length);
  for await (const { offset, length } of planEntries(place, parts)) {
    lengths[indexOfOffset(offsets, offset)] = length;
  }
  return { offsets, lengths };
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

async function* planEntries(
  { store, batchId, map }: PlanPlace,
  parts: readonly PlanPart[],
): AsyncGenerator<PlanEntry> {
  for (const { safe, ranges } of parts) {
    if (ranges.length === 0) continue;
    const reader = await openPlan(store, planKey(batchId, map.nonce, safe), map.entries[safe]);
    try {
      for (const range of ranges) yield* entriesBetween(reader, range);
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
    throw isGatewayError(error, 'object_missing') ? unreadable(key, error) : error;
  });
  if (entries !== undefined && reader.size === entries * PLAN_ENTRY_BYTES) return reader;
  await reader.close();
  throw unreadable(key);
}

async function* entriesBetween(
  reader: ObjectReader,
  { from, to }: Span,
): AsyncGenerator<PlanEntry> {
  for (let at = from; at < to; at += ENTRIES_PER_READ) {
    const count = Math.min(ENTRIES_PER_READ, to - at);
    const bytes = await reader.read(at * PLAN_ENTRY_BYTES, count * PLAN_ENTRY_BYTES);
    for (let index = 0; index < count; index++) yield decodePlanEntry(bytes, index);
  }
}

function unreadable(key: string, cause?: unknown): GatewayError {
  return new GatewayError('plan_unreadable', `${key} is missing or has another size`, { cause });
}
