import type { OpenProvider } from '../activities/delegate/deps';
import type { DelegateObserver, ProviderCall } from '../activities/delegate/observer';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { IdempotentResult, MarkedJob } from '../providers/provider';
import type { ProviderJobs } from '../storage/postgres/provider-jobs/repository';
import { repeat, type Repeated } from './repeat';

/** What {@link searchOrphans} needs. */
export interface OrphanSearchOptions {
  readonly jobs: Pick<ProviderJobs, 'withoutRow'>;
  readonly store: { storeId(): Promise<string> };
  readonly providers: readonly OpenProvider[];
  readonly observer: Pick<DelegateObserver, 'called'>;
  readonly metrics: Pick<WorkerMetrics, 'providerJobsOrphaned'>;
  readonly logger: Logger;
  readonly everyMs?: number;
  /** How long an orphan is left alone, ms. */
  readonly graceMs?: number;
}

const EVERY_MS = 3_600_000;
const LOOK_BACK_MS = 3 * 86_400_000;
/** Of one round. */
const MAX_MS = 600_000;
/** Its row may come back while a restored PostgreSQL is completed. */
const GRACE_MS = 3_600_000;

/**
 * Looks for jobs that carry our marker and that no row knows, once an hour. They are counted, and cancelled if the
 * provider has `cancel_orphans` and none of the looks of an hour has found a row (docs/design/delegation.md#orphans).
 */
export function searchOrphans(options: OrphanSearchOptions): Repeated {
  const { logger, everyMs = EVERY_MS } = options;
  const search = new OrphanSearch(options);
  return repeat((signal) => search.run(AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)])), {
    everyMs,
    onFailed: (error) => logger.warn({ err: error }, 'orphans at providers not searched for'),
  });
}

class OrphanSearch {
  readonly #o: OrphanSearchOptions;
  /** When each orphan was first seen without a row, Unix ms, by provider. */
  readonly #seen = new Map<string, ReadonlyMap<string, number>>();

  constructor(options: OrphanSearchOptions) {
    this.#o = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const storeId = await this.#o.store.storeId();
    for (const provider of this.#o.providers) {
      if (!signal.aborted) await this.#search(provider, storeId, signal);
    }
  }

  async #search(provider: OpenProvider, storeId: string, signal: AbortSignal): Promise<void> {
    const { api, name, account } = provider;
    if (api.listMarked === undefined) return;
    const nowMs = Date.now();
    const marker = { storeId, sinceMs: nowMs - LOOK_BACK_MS };
    const listed = this.#called(provider, 'list', await api.listMarked(marker, { signal }));
    if (listed.outcome !== 'ok') return;
    const orphans = await this.#o.jobs.withoutRow(account, listed.value);
    this.#o.metrics.providerJobsOrphaned.set({ provider: name }, orphans.length);
    const before = this.#seen.get(name);
    const since = ({ externalId }: MarkedJob) => before?.get(externalId) ?? nowMs;
    this.#seen.set(name, new Map(orphans.map((one) => [one.externalId, since(one)])));
    for (const orphan of orphans) {
      const log = { provider: name, ...orphan };
      this.#o.logger.error(log, 'a provider runs a job that no row knows');
      const isDue = nowMs - since(orphan) >= (this.#o.graceMs ?? GRACE_MS);
      if (isDue && cancelsOrphans(provider)) await this.#cancel(provider, orphan, signal);
    }
  }

  async #cancel(provider: OpenProvider, orphan: MarkedJob, signal: AbortSignal): Promise<void> {
    const { api, name } = provider;
    const result = this.#called(
      provider,
      'cancel',
      await api.cancel(orphan.externalId, { signal }),
    );
    const log = { provider: name, ...orphan, outcome: result.outcome };
    this.#o.logger.warn(log, 'cancel of a job that no row knows requested');
  }

  #called<T>(
    { name }: OpenProvider,
    call: ProviderCall,
    result: IdempotentResult<T>,
  ): IdempotentResult<T> {
    this.#o.observer.called(name, call, result.outcome);
    if (result.outcome === 'ok') return result;
    const { outcome, failure } = result;
    const log = { provider: name, call, outcome, ...failure };
    this.#o.logger.warn(log, 'call to a provider failed');
    return result;
  }
}

function cancelsOrphans({ config }: OpenProvider): boolean {
  return 'cancel_orphans' in config && config.cancel_orphans;
}
