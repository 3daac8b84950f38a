import { NightshiftError } from '../core/errors';
import type { Headers, HeaderVault, SealedHeaders } from '../platform/header-vault';

/** Batches whose headers a worker keeps at hand, and for how long. */
const KEPT_BATCHES = 256;
const KEPT_MS = 60_000;

/**
 * Headers of batches, read once a minute for each batch that runs here.
 *
 * @throws postgres_unavailable, unavailable: both pass, and the chunk waits
 */
export function createPassThrough(
  find: (batchId: string) => Promise<SealedHeaders | null>,
  vault: Pick<HeaderVault, 'open'>,
): (batchId: string) => Promise<Headers> {
  const kept = new Map<string, { readonly headers: Headers; readonly untilMs: number }>();
  return async (batchId) => {
    const nowMs = performance.now();
    const known = kept.get(batchId);
    if (known !== undefined && nowMs < known.untilMs) return known.headers;
    kept.delete(batchId);
    const sealed = await find(batchId);
    // They go with the end of the batch, so that nothing can be sent without them.
    if (sealed === null)
      throw new NightshiftError('unavailable', `${batchId} has no headers any more`);
    const headers = vault.open(batchId, sealed);
    for (const oldest of kept.keys()) {
      if (kept.size < KEPT_BATCHES) break;
      kept.delete(oldest);
    }
    kept.set(batchId, { headers, untilMs: nowMs + KEPT_MS });
    return headers;
  };
}
