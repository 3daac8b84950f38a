import { createServer, type AddressInfo } from 'node:net';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Logger } from '../platform/logger';

/** SDK warnings about what we intend: workers for chunks have no workflows, and no worker has Nexus. */
const EXPECTED = /^No (workflows|Nexus services) registered/;
/** How often another port is tried, if the one that was free is taken before the SDK listens on it. */
const PORT_TRIES = 5;
const SCRAPE_TIMEOUT_MS = 2_000;
const WAIT_BUCKETS_SEC = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 900, 3_600];

/** The SDK's runtime in this process. */
export interface TemporalRuntime {
  /** The SDK's own metrics as Prometheus text (docs/metrics.md#temporal-sdk). */
  scrape(): Promise<string>;
}

/**
 * Passes the SDK's log lines to our logger, and lets the SDK serve its metrics on a loopback port, from which
 * the metrics page of this process reads them. The SDK can only serve them on a port that is known before it
 * listens. Call it once per process, before any worker is created.
 */
export async function installTemporalRuntime(logger: Logger): Promise<TemporalRuntime> {
  for (let tries = 1; ; tries++) {
    const address = `127.0.0.1:${await freePort()}`;
    try {
      install(logger, address);
      return { scrape: () => scrape(`http://${address}/metrics`) };
    } catch (error) {
      if (tries === PORT_TRIES || !/Address already in use/.test(String(error))) throw error;
    }
  }
}

function install(logger: Logger, bindAddress: string): void {
  const levels = {
    TRACE: 'trace',
    DEBUG: 'debug',
    INFO: 'info',
    WARN: 'warn',
    ERROR: 'error',
  } as const;
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => {
      logger[EXPECTED.test(message) ? 'debug' : levels[level]]({ ...meta }, message);
    }),
    shutdownSignals: [],
    telemetryOptions: {
      logging: { forward: {}, filter: 'WARN' },
      metrics: {
        // Seconds, as Prometheus expects. This version adds no `_total` even if it is told to. It is told not
        // to, so that names stay if a later version would.
        prometheus: {
          bindAddress,
          countersTotalSuffix: false,
          unitSuffix: true,
          useSecondsForDurations: true,
          // The SDK's own go from 10 s to 100 s in one step.
          histogramBucketOverrides: { schedule_to_start_latency: WAIT_BUCKETS_SEC },
        },
        attachServiceName: false,
        globalTags: { process: 'worker' },
      },
    },
  });
}

async function scrape(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(SCRAPE_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  return response.text();
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
