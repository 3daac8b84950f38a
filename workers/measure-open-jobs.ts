import type { OpenProvider } from '../activities/delegate/deps';
import type { Logger } from '../platform/logger';
import type { WorkerMetrics } from '../platform/worker-metrics';
import type { ProviderJobs } from '../storage/postgres/provider-jobs/repository';
import { repeat, type Repeated } from './repeat';

/** What {@link measureOpenJobs} needs. */
export interface OpenJobsMeasurement {
  readonly jobs: Pick<ProviderJobs, 'openByAccount'>;
  readonly providers: readonly OpenProvider[];
  readonly metrics: Pick<WorkerMetrics, 'providerJobsOpen' | 'providerTokens' | 'providerPollAge'>;
  readonly logger: Logger;
  readonly everyMs?: number;
}

const EVERY_MS = 60_000;
const NONE = { open: 0, tokens: 0, pollAgeSec: 0 };

/**
 * Shows the jobs that each provider of this worker runs, once a minute. They are read from the rows, so every
 * worker shows the jobs of all of them.
 */
export function measureOpenJobs(options: OpenJobsMeasurement): Repeated {
  const { jobs, providers, metrics, logger, everyMs = EVERY_MS } = options;
  const round = async (): Promise<void> => {
    const found = new Map((await jobs.openByAccount()).map((one) => [one.account, one]));
    for (const { name: provider, account } of providers) {
      const { open, tokens, pollAgeSec } = found.get(account) ?? NONE;
      metrics.providerJobsOpen.set({ provider }, open);
      metrics.providerTokens.set({ provider }, tokens);
      metrics.providerPollAge.set({ provider }, pollAgeSec);
    }
  };
  const onFailed = (error: unknown): void =>
    logger.warn({ err: error }, 'jobs at providers not counted');
  return repeat(round, { everyMs, onFailed });
}
