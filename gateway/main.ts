import type { FastifyInstance } from 'fastify';
import { listen } from '../http/listen';
import type { Config } from '../platform/config-schema';
import { type DependencyGauge, watchDependencies } from '../platform/dependency-watch';
import { watchEventLoopDelay } from '../platform/event-loop-delay';
import { createGatewayMetrics } from '../platform/gateway-metrics';
import { hostProcess, type ProcessHost } from '../platform/host-process';
import { createLogger } from '../platform/logger';
import { createMetricsRegistry } from '../platform/metrics';
import { observabilityPlace } from '../platform/observability-place';
import { startObservabilityServer } from '../platform/observability-server';
import type { RunningProcess } from '../platform/process';
import { openTracing } from '../platform/tracing/open-tracing';
import { within } from '../platform/within';
import { createApiKeyRepository } from '../storage/postgres/api-keys';
import { openPool } from '../storage/postgres/pool';
import { buildGateway } from './app';
import { type GatewayAudio, openAudio } from './audio/open-audio';
import { CallerKeys } from './caller-keys';
import { flowView, poolSample } from './flow-view';
import { openPools, type OpenPools } from './pools/open-pools';
import { BodyRoom } from './requests/body-room';
import { FAULT_LOG_MS, FaultLog } from './requests/fault-log';
import { readWorkerToken } from './requests/caller';

/** Bounds how long a request waits for a database that hangs. */
const STATEMENT_TIMEOUT_MS = 5_000;
/** How long what is left after the drain may take to end. */
const CUT_MS = 5_000;
/** How long the answers to requests that are dropped at the end may take to leave. */
const LAST_ANSWERS_MS = 1_000;

/**
 * Runs the gateway until `close`. It is not ready before a backend is. `close` stops listening, lets waiting and
 * running requests end for `gateway.drain_budget`, then drops what waits and cuts the rest.
 *
 * @throws config_invalid, port_in_use
 */
export function runGateway(config: Config): Promise<RunningProcess> {
  return hostProcess(createLogger(config.log, 'gateway'), (host) => open(config, host));
}

async function open(config: Config, { logger, onClose }: ProcessHost): Promise<string> {
  const { gateway } = config;
  const now = () => performance.now();
  const registry = createMetricsRegistry('gateway');
  const tracing = openTracing(config.tracing, { service: 'nightshift-gateway', logger });
  onClose('tracing', async () => tracing?.close());
  const pools = openPools({ config, logger, now });
  onClose('backends', () => pools.close());
  const { table } = pools;
  const { max_label_values: maxModels, idle_series: idleMs } = config.metrics;
  const metrics = createGatewayMetrics(registry, { models: table.models, maxModels, idleMs });
  const { queue_bytes: bytes, sheddable_bytes: sheddableBytes, body_grace: slowAfterMs } = gateway;
  const bodyRoom = new BodyRoom({ bytes, sheddableBytes, slowAfterMs, now });
  metrics.observePools(() => ({
    pools: table.pools.map((pool) => poolSample(pool, now())),
    ...{ receivingBytes: bodyRoom.bytes, queueBytes: bytes },
  }));
  const audio = await openAudio({ config, metrics: metrics.audio, logger, onClose, now });
  const pages = {
    '/admin/flow': () => flowView(table.pools, bodyRoom, now()),
    '/admin/audio': () => audio.view(),
  };
  const place = observabilityPlace(config, 'gateway');
  const observability = await startObservabilityServer({ ...place, registry, pages, logger });
  onClose('observability', () => observability.close());
  const endDelays = watchEventLoopDelay(metrics.eventLoopDelay);
  onClose('event loop delay', async () => endDelays());
  const faults = new FaultLog(logger);
  const faultTimer = setInterval(() => faults.flush(), FAULT_LOG_MS).unref();
  onClose('fault log', async () => {
    clearInterval(faultTimer);
    faults.flush();
  });
  const app = buildGateway({
    ...{ audio: audio.routes, realtime: audio.realtime },
    ...{ config, pools: table, bodyRoom, metrics, tracing, faults, logger, now },
    authenticator: openKeys(config, { logger, onClose, now, up: metrics.dependencyUp }),
    isWorkerToken: readWorkerToken(gateway.worker_token_file),
  });
  const endRequests = (): Promise<void> => {
    audio.realtime?.sessions.close(gateway.audio?.scheduler.shutdown_grace ?? 0);
    return drain({ app, pools, audio, budgetMs: gateway.drain_budget });
  };
  onClose('http', endRequests, gateway.drain_budget + CUT_MS);
  const url = await listen(app, 'gateway', { settings: gateway, logger });
  observability.markStarted({
    backends: async () => {
      const isIdle = table.pools.every(({ readyBackends }) => readyBackends === 0);
      if (isIdle && audio.pool.readyWorkers === 0) {
        throw new Error('no backend is ready');
      }
    },
  });
  onClose('readiness', async () => observability.markNotReady('draining'));
  return url;
}

interface KeysOptions extends ProcessHost {
  readonly now: () => number;
  readonly up: DependencyGauge;
}

/** Only `auth.mode: api_key` needs PostgreSQL. `/ready` does not ask for it, because known keys work without it. */
function openKeys({ auth, postgres }: Config, { logger, onClose, now, up }: KeysOptions) {
  if (auth.mode !== 'api_key') return new CallerKeys(async () => null, now);
  const pool = openPool(postgres.url, {
    logger,
    applicationName: 'nightshift-gateway',
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  onClose('postgres', () => pool.end());
  const checks = { postgres: async () => void (await pool.query('select 1')) };
  const watch = watchDependencies({ checks, logger, up });
  onClose('dependency watch', () => watch.close());
  const keys = createApiKeyRepository(pool);
  return new CallerKeys((key) => keys.authenticate(key, Math.floor(Date.now() / 1_000)), now);
}

interface DrainedParts {
  readonly app: FastifyInstance;
  readonly pools: OpenPools;
  readonly audio: Pick<GatewayAudio, 'drain'>;
  readonly budgetMs: number;
}

/** Ends the requests of a gateway that takes no new connections (docs/design/gateway.md#drain). */
async function drain({ app, pools, audio, budgetMs }: DrainedParts): Promise<void> {
  const closed = app.close().then(() => true);
  // It keeps to the same budget by itself.
  void audio.drain();
  if (await within(budgetMs, closed, () => false)) return;
  pools.closeQueues();
  await within(LAST_ANSWERS_MS, closed, () => false);
  app.server.closeAllConnections();
  await closed;
}
