import type { Worker } from '@temporalio/worker';
import type { NightshiftError } from '../core/errors';
import type { Logger } from '../platform/logger';
import type { ObservabilityServer } from '../platform/observability-server';
import type { RunningProcess } from '../platform/process';
import type { ShutdownPhase } from '../platform/shutdown';
import { phaseRecord, runPhases } from '../platform/shutdown';

/** What a worker process hosts. */
export interface HostOptions {
  readonly workers: readonly Worker[];
  readonly observability: ObservabilityServer;
  /** Aborted first, so that chunks send no new request and finish those in flight. */
  readonly drain: AbortController;
  readonly drainBudgetMs: number;
  readonly logger: Logger;
  /** Everything the process opened, in the order of release. */
  readonly release: readonly { name: string; run(): Promise<void> }[];
}

const RELEASE_TIMEOUT_MS = 5_000;

/** The running workers of a process. */
export interface HostedWorkers extends RunningProcess {
  /**
   * Call it when an invariant of this process is broken. The process reports itself not ready with `reason`,
   * takes no new work, finishes requests in flight, and then ends with `error`.
   */
  distrust(reason: string, error: NightshiftError): void;
}

/** Runs the workers until `close`. If one of them fails, the whole process ends. */
export function hostWorkers(options: HostOptions): HostedWorkers {
  const running = Promise.all(options.workers.map((worker) => worker.run()));
  let closing: Promise<void> | null = null;
  let distrusted: NightshiftError | null = null;
  const close = (): Promise<void> => (closing ??= stop(options, running));
  const finished = running.then(async () => {
    if (distrusted === null) return;
    await close();
    throw distrusted;
  });
  // If one worker fails, the others drain, and `finished` rejects.
  running.catch((error: unknown) => {
    options.logger.fatal({ err: error }, 'worker failed');
    takeNothingNew(options);
  });
  finished.catch(() => undefined);
  const distrust: HostedWorkers['distrust'] = (reason, error) => {
    distrusted ??= error;
    options.observability.markNotReady(reason);
    options.drain.abort();
    takeNothingNew(options);
  };
  return { url: options.observability.url, finished, close, distrust };
}

function takeNothingNew({ workers }: HostOptions): void {
  for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
}

async function stop(options: HostOptions, running: Promise<unknown>): Promise<void> {
  const phases: ShutdownPhase[] = [
    {
      name: 'drain',
      timeoutMs: options.drainBudgetMs + 15_000,
      run: () => drainWorkers(options, running),
    },
    ...options.release.map(({ name, run }) => ({ name, timeoutMs: RELEASE_TIMEOUT_MS, run })),
    {
      name: 'observability',
      timeoutMs: RELEASE_TIMEOUT_MS,
      run: () => options.observability.close(),
    },
  ];
  await runPhases(phases, (phase) => options.logger.info(phaseRecord(phase), 'shutdown phase'));
}

async function drainWorkers(options: HostOptions, running: Promise<unknown>): Promise<void> {
  options.observability.markNotReady('draining');
  options.drain.abort();
  takeNothingNew(options);
  await running;
}
