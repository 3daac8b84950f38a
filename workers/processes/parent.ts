import { tenantWeight } from '../../core/dispatch/fairness-weights';
import { LoanDesk } from '../../inference/loans/loan-desk';
import type { Config } from '../../platform/config';
import { createLogger, type Logger } from '../../platform/logger';
import { createMetricsRegistry, type Registry } from '../../platform/metrics';
import { observabilityPlace } from '../../platform/observability-place';
import {
  startObservabilityServer,
  type ObservabilityServer,
} from '../../platform/observability-server';
import type { RunningProcess, StartOptions } from '../../platform/process';
import { createProcessesSeries } from '../../platform/series/processes-series';
import { drainBudgetOf } from '../drain-budget';
import { mergeMetrics } from './merged-metrics';
import { WorkerProcess } from './worker-process';

/** Beyond the drain budget, a process may need this long to release what it opened. */
const RELEASE_MS = 45_000;
const SCRAPE_MS = 5_000;

/**
 * Runs a worker as `count` processes under this one until it is closed. A process that dies is started again. The
 * processes share the permits, and their metrics are one page (docs/design/worker-processes.md).
 * @throws what the start of a process failed with; port_in_use
 */
export async function runWorkerProcesses(
  config: Config,
  count: number,
  { signal }: Pick<StartOptions, 'signal'> = {},
): Promise<RunningProcess> {
  const logger = createLogger(config.log, 'worker');
  const registry = createMetricsRegistry('worker');
  const desk = new LoanDesk((tenant) => tenantWeight(config.fairness, tenant));
  const processes: WorkerProcess[] = [];
  const observability = await openObservability(config, { logger, registry, processes });
  const { died } = createProcessesSeries(registry, () => running(processes).length);
  const shared = { desk, logger, onDied: () => died.inc(), config: partOf(config, count) };
  const onStarting = (reason: string): void => observability.markStarting(reason);
  for (let number = 1; number <= count; number++) {
    processes.push(new WorkerProcess({ ...shared, number, onStarting }));
  }
  const close = once(() => stop({ config, desk, observability, processes }));
  const giveUp = (): void => void close();
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    await Promise.all(processes.map((one) => one.start()));
    signal?.throwIfAborted();
  } catch (error) {
    await close();
    throw signal?.aborted === true ? (signal.reason as Error) : error;
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
  observability.markStarted(Object.fromEntries(processes.map(checkOf)));
  return { url: observability.url, close };
}

/** The settings of one of `count` processes: it serves its own pages to the parent, and has a part of memory and slots. */
function partOf(config: Config, count: number): Config {
  const { worker, concurrency } = config;
  return {
    ...config,
    worker: {
      ...worker,
      observability_host: '127.0.0.1',
      observability_port: 0,
      exec_slots: Math.ceil(worker.exec_slots / count),
    },
    concurrency: {
      ...concurrency,
      in_flight_bytes: Math.ceil(concurrency.in_flight_bytes / count),
    },
  };
}

interface Pages {
  readonly logger: Logger;
  readonly registry: Registry;
  readonly processes: readonly WorkerProcess[];
}

function openObservability(
  config: Config,
  { logger, registry, processes }: Pages,
): Promise<ObservabilityServer> {
  const metrics = async (): Promise<string> => {
    const pages = running(processes).map((url) => read(`${url}/metrics`).catch(() => ''));
    return mergeMetrics([await registry.metrics(), ...(await Promise.all(pages))]);
  };
  return startObservabilityServer({
    ...observabilityPlace(config, 'worker'),
    logger,
    registry: { metrics, contentType: registry.contentType },
  });
}

function running(processes: readonly WorkerProcess[]): string[] {
  return processes.flatMap(({ url }) => (url === null ? [] : [url]));
}

function checkOf(one: WorkerProcess): [string, () => Promise<void>] {
  const check = async (): Promise<void> => {
    if (one.url === null) throw new Error(`process ${one.number} is starting`);
    await read(`${one.url}/ready`);
  };
  return [`process ${one.number}`, check];
}

async function read(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(SCRAPE_MS) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
  return text;
}

interface Parts {
  readonly config: Config;
  readonly desk: LoanDesk;
  readonly observability: ObservabilityServer;
  readonly processes: readonly WorkerProcess[];
}

async function stop({ config, desk, observability, processes }: Parts): Promise<void> {
  observability.markNotReady('draining');
  const timeoutMs = drainBudgetOf(config) + RELEASE_MS;
  await Promise.all(processes.map((one) => one.close(timeoutMs)));
  desk.close();
  await observability.close();
}

function once(run: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => (done ??= run());
}
