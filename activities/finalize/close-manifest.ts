import { TEMPORAL_LIMITS } from '../../core/batch/temporal-bounds';
import type { StopCause } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { uncovered } from '../../core/journal/coverage';
import { encodeManifest, parseManifest, type Manifest } from '../../core/journal/manifest';
import { manifestKey } from '../../core/names/object-names';
import type { JournalStore, SealInfo } from '../../storage/journal/journal-store';
import type { UnansweredRange } from '../contract';
import type { PlanPart, PlanPlace } from './plan-offsets';
import { sealRest } from './rest';

/** What closing a batch takes. */
export interface CloseInput {
  readonly journal: JournalStore;
  readonly place: PlanPlace;
  readonly cause: StopCause | null;
  /** Throws when the activity is cancelled. */
  check(): void;
}

/** The manifest that holds, or what has to be run before there can be one. */
export type Closing =
  | { readonly kind: 'holes'; readonly holes: readonly UnansweredRange[] }
  | { readonly kind: 'closed'; readonly manifest: Manifest };

/**
 * The manifest of the batch (execution §2). One that is there is obeyed, with its seals and its cause.
 * Else, without a cause, every routed entry must be sealed, or the holes are answered and nothing is
 * written; with a cause, answers outside all seals are sealed first. Losing the race to write it is
 * finding it there. @throws object_corrupt, plan_unreadable, object_store_failed
 */
export async function closeBatch(input: CloseInput): Promise<Closing> {
  const earlier = await readManifest(input);
  if (earlier !== null) return { kind: 'closed', manifest: earlier };

  const { place, journal, cause } = input;
  const { map, batchId } = place;
  const seals = (await journal.listSeals(batchId)).filter((seal) => seal.range !== null);
  const open = openParts(map.entries, seals);
  if (cause === null && open.length > 0) return { kind: 'holes', holes: holesOf(open) };
  for (const part of open) seals.push(...(await sealRest({ ...input, part, seals })));

  const manifest: Manifest = {
    version: 1,
    nonce: map.nonce,
    cause,
    seals: seals.map(({ key, size }) => ({ key, size })),
    closed_at: Math.floor(Date.now() / 1000),
  };
  const bytes = encodeManifest(manifest);
  const result = await place.store.putIfAbsent(manifestKey(batchId), bytes);
  const winner = result === 'created' ? parseManifest(bytes) : await readManifest(input);
  if (winner === null)
    throw new NightshiftError('object_store_failed', 'the manifest has vanished');
  return { kind: 'closed', manifest: winner };
}

/** Positions that a manifest's seals leave open, by model; `rest` objects settle none of them. */
export function openParts(
  entries: Readonly<Record<string, number>>,
  seals: readonly Pick<SealInfo, 'safeModel' | 'range'>[],
): PlanPart[] {
  const parts = Object.entries(entries).map(([safe, count]) => {
    const ranges = seals.filter((seal) => seal.safeModel === safe).map((seal) => seal.range);
    return {
      safe,
      ranges: uncovered(
        ranges.filter((range) => range !== null),
        count,
      ),
    };
  });
  return parts.filter(({ ranges }) => ranges.length > 0);
}

/**
 * As many ranges as a result may carry. Where there are more, each model has one from its first to its
 * last hole: chunks skip what is answered in between.
 */
export function holesOf(parts: readonly PlanPart[]): UnansweredRange[] {
  const holes = parts.flatMap(({ safe, ranges }) =>
    ranges.map(({ from, to }) => ({ safe, from, to })),
  );
  if (holes.length <= TEMPORAL_LIMITS.ranges) return holes;
  return parts.map(({ safe, ranges }) => ({
    safe,
    from: ranges[0]?.from ?? 0,
    to: ranges.at(-1)?.to ?? 0,
  }));
}

async function readManifest({ place }: CloseInput): Promise<Manifest | null> {
  const { store, batchId, map } = place;
  const bytes = await store.read(manifestKey(batchId)).catch((error: unknown) => {
    if (isNightshiftError(error, 'object_missing')) return null;
    throw error;
  });
  if (bytes === null) return null;
  const manifest = parseManifest(bytes);
  if (manifest.nonce === map.nonce) return manifest;
  throw new NightshiftError('plan_unreadable', 'the manifest belongs to another plan');
}
