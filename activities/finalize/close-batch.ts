import type { StopCause } from '../../core/batch/status';
import { NightshiftError, nullIfMissing } from '../../core/errors';
import { encodeManifest, parseManifest, type Manifest } from '../../core/journal/manifest';
import { manifestKey } from '../../core/names/object-names';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { UnansweredRange } from '../contract';
import type { BatchPlan } from './plan-offsets';
import { writeRestObjects } from './rest-objects';
import { uncoveredRanges, unansweredRanges } from './unanswered-ranges';

/** What {@link closeBatch} needs. */
export interface CloseInput {
  readonly journal: JournalStore;
  readonly plan: BatchPlan;
  readonly cause: StopCause | null;
  /** Throws when the activity is cancelled. */
  check(): void;
}

/** The manifest, or the ranges that must be run before there can be one (`holes` on the wire). */
export type Closing =
  | { readonly kind: 'holes'; readonly holes: readonly UnansweredRange[] }
  | { readonly kind: 'closed'; readonly manifest: Manifest };

/**
 * Returns the manifest of a batch, and writes it if there is none (docs/design/journal.md#manifest). A
 * manifest that exists, or that another attempt writes first, decides seals and cause. Without a cause,
 * every planned position must be sealed; if not, the unanswered ranges are returned and nothing is written.
 * With a cause, answers outside all seals are first written to rest objects.
 * @throws object_corrupt, plan_unreadable, object_store_failed
 */
export async function closeBatch(input: CloseInput): Promise<Closing> {
  const { plan, journal, cause } = input;
  const { map, batchId, store } = plan;
  const [earlier, listed] = await Promise.all([readManifest(input), journal.listSeals(batchId)]);
  if (earlier !== null) return { kind: 'closed', manifest: earlier };

  const seals = listed.filter((seal) => seal.range !== null);
  const uncovered = uncoveredRanges(map.entries, seals);
  if (cause === null && uncovered.length > 0) {
    return { kind: 'holes', holes: unansweredRanges(uncovered) };
  }
  for (const ranges of uncovered) seals.push(...(await writeRestObjects(input, ranges, seals)));

  const bytes = encodeManifest({
    version: 1,
    nonce: map.nonce,
    cause,
    seals: seals.map(({ key, size }) => ({ key, size })),
    closed_at: Math.floor(Date.now() / 1000),
  });
  const result = await store.putIfAbsent(manifestKey(batchId), bytes);
  const manifest = result === 'created' ? parseManifest(bytes) : await readManifest(input);
  if (manifest === null) {
    throw new NightshiftError('object_store_failed', 'the manifest has vanished');
  }
  return { kind: 'closed', manifest };
}

async function readManifest({ plan }: CloseInput): Promise<Manifest | null> {
  const { store, batchId, map } = plan;
  const bytes = await nullIfMissing(store.read(manifestKey(batchId)));
  if (bytes === null) return null;
  const manifest = parseManifest(bytes);
  if (manifest.nonce === map.nonce) return manifest;
  throw new NightshiftError('plan_unreadable', 'the manifest belongs to another plan');
}
