import { NightshiftError } from '../core/errors';
import type { Headers, HeaderVault, SealedHeaders } from '../platform/header-vault';

/** Batches whose headers a worker caches, and for how long. */
const CACHED_BATCHES = 256;
const CACHED_MS = 60_000;

/**
 * Reads the pass-through headers of a batch, at most once a minute for each batch that runs here.
 *
 * @throws postgres_unavailable, unavailable: both are retryable, so the chunk waits
 */
export function createPassThrough(
  find: (batchId: string) => Promise<SealedHeaders | null>,
  vault: Pick<HeaderVault, 'open'>,
): (batchId: string) => Promise<Headers> {
  const cached = new Map<string, { readonly headers: Headers; readonly untilMs: number }>();
  return async (batchId) => {
    const nowMs = performance.now();
    const known = cached.get(batchId);
    if (known !== undefined && nowMs < known.untilMs) return known.headers;
    cached.delete(batchId);
    const sealed = await find(batchId);
    // Headers are removed when the batch ends. No request may be sent without them.
    if (sealed === null)
      throw new NightshiftError('unavailable', `${batchId} has no headers any more`);
    const headers = vault.open(batchId, sealed);
    for (const oldest of cached.keys()) {
      if (cached.size < CACHED_BATCHES) break;
      cached.delete(oldest);
    }
    cached.set(batchId, { headers, untilMs: nowMs + CACHED_MS });
    return headers;
  };
}
