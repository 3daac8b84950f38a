import type { Worker } from '@temporalio/worker';
import type { Logger } from '../platform/logger';
import type { ObservabilityServer } from '../platform/observability-server';
import type { RunningProcess } from '../platform/process';
import type { ShutdownPhase } from '../platform/shutdown';
import { runPhases } from '../platform/shutdown';

export interface HostOptions {
  readonly workers: readonly Worker[];
  readonly observability: ObservabilityServer;
  /** Aborted first: chunks stop sending and finish what runs. */
  readonly drain: AbortController;
  readonly drainBudgetMs: number;
  readonly logger: Logger;
  /** What the process opened, in the order in which it is released. */
  readonly release: readonly { name: string; run(): Promise<void> }[];
}

const RELEASE_TIMEOUT_MS = 5_000;

/** Runs the workers until `close`; a worker that fails ends the whole process. */
export function hostWorkers(options: HostOptions): RunningProcess {
  const running = Promise.all(options.workers.map((worker) => worker.run()));
  const finished = running.then(() => undefined);
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => (closing ??= stop(options, finished));
  // A worker that ends by itself takes the others with it; whoever started us hears of it.
  finished.catch((error: unknown) => {
    options.logger.fatal({ err: error }, 'worker failed');
    for (const worker of options.workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  });
  return { url: options.observability.url, finished, close };
}

async function stop(options: HostOptions, finished: Promise<void>): Promise<void> {
  const phases: ShutdownPhase[] = [
    {
      name: 'drain',
      timeoutMs: options.drainBudgetMs + 15_000,
      run: () => drainWorkers(options, finished),
    },
    ...options.release.map(({ name, run }) => ({ name, timeoutMs: RELEASE_TIMEOUT_MS, run })),
    {
      name: 'observability',
      timeoutMs: RELEASE_TIMEOUT_MS,
      run: () => options.observability.close(),
    },
  ];
  await runPhases(phases, (phase) => options.logger.info({ ...phase }, 'shutdown phase'));
}

async function drainWorkers(options: HostOptions, finished: Promise<void>): Promise<void> {
  options.observability.markNotReady('draining');
  options.drain.abort();
  for (const worker of options.workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  await finished;
}
