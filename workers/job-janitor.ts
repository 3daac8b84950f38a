import { releaseJob, type ReleaseDeps } from '../activities/delegate/release-job';
import type { OpenProvider } from '../activities/delegate/deps';
import type { ProviderJobs } from '../storage/postgres/provider-jobs/repository';
import { repeat, type Repeated } from './repeat';

/** What {@link startJobJanitor} needs. */
export interface JanitorOptions extends Omit<ReleaseDeps, 'jobs' | 'storeId'> {
  readonly jobs: ProviderJobs;
  readonly store: { storeId(): Promise<string> };
  readonly providers: readonly OpenProvider[];
  readonly everyMs?: number;
  /** A job that was touched more recently is left alone, ms. */
  readonly idleMs?: number;
}

const EVERY_MS = 300_000;
/** Of one round. */
const MAX_MS = 120_000;
const PAGE = 20;

/**
 * Cleans up at providers after batches that have ended, every five minutes. It runs in workers that have the keys
 * of the providers; the rows divide the jobs among them (docs/design/delegation.md#cleaning-up).
 */
export function startJobJanitor(options: JanitorOptions): Repeated {
  const { logger, everyMs = EVERY_MS } = options;
  return repeat(
    (signal) => cleanUp(options, AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)])),
    {
      everyMs,
      onFailed: (error) => logger.warn({ err: error }, 'jobs at providers not cleaned up'),
    },
  );
}

/** Visits jobs until none is due or the time is over. */
async function cleanUp(options: JanitorOptions, signal: AbortSignal): Promise<void> {
  const { jobs, store, idleMs = EVERY_MS } = options;
  const providers = new Map(options.providers.map((provider) => [provider.account, provider]));
  const storeId = await store.storeId();
  while (!signal.aborted && providers.size > 0) {
    const claim = { accounts: [...providers.keys()], idleMs, limit: PAGE };
    const rows = await jobs.claimToRelease(claim);
    if (rows.length === 0) return;
    for (const row of rows) {
      const provider = providers.get(row.account);
      if (signal.aborted || provider === undefined) continue;
      const visit = { provider, signal, nowMs: Date.now() };
      const end = await releaseJob(row, { ...options, storeId }, visit);
      // The key is wrong for the other jobs as well.
      if (end === 'auth') providers.delete(row.account);
    }
  }
}
