import { HarmGuard } from '../../core/dispatch/backends/harm-guard';
import { LearntLimit } from '../../core/dispatch/backends/learnt-limit';
import { PrefixIndex } from '../../core/dispatch/backends/prefix-index';
import { flowWeight } from '../../core/dispatch/fairness-weights';
import { createBreaker } from '../../core/dispatch/breaker';
import { TokenCosts } from '../../core/dispatch/cost';
import { createChainReader } from '../../core/plan/prefix-chain';
import { BackendProbe } from '../../inference/proxy/backend-probe';
import { openProxiedBackend } from '../../inference/proxy/proxied-backend';
import { openModelListing } from '../../inference/proxy/model-listing';
import { readGatewaySecrets } from '../../inference/secrets';
import { flowBlocksOf, hasFixedBounds, type FlowBlocks } from '../../platform/config-flow-blocks';
import type { BackendConfig, PoolConfig } from '../../platform/config-gateway';
import { redactUrl } from '../../platform/config-redact';
import type { Config } from '../../platform/config-schema';
import type { Logger } from '../../platform/logger';
import { PoolModels, type ModelSource } from '../models/pool-models';
import { GatewayPool } from './gateway-pool';
import { PoolBackend } from './pool-backend';
import { ANY_MODEL, PoolTable } from './pool-table';
import { poolSettings } from './settings';

/** What the pools are opened with. */
export interface OpenPoolsOptions {
  readonly config: Pick<Config, 'fairness' | 'gateway' | 'secrets_dir'>;
  readonly logger: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** All pools, with their probes and timers running. */
export interface OpenPools {
  readonly table: PoolTable;
  /** Drops every waiting request and refuses new ones. */
  closeQueues(): void;
  /** Ends probes and timers, and closes all connections to backends. */
  close(): Promise<void>;
}

const TICK_MS = 100;
/** Beyond what any learnt limit allows, so that a request that was admitted never waits for a connection. */
const SPARE_CONNECTIONS = 16;
const STATIC_CONNECTIONS = 4_096;
/** Where vLLM has its metrics. */
const METRICS_PATH = '/metrics';
const BREAKER = { initialBackoffMs: 1_000, maxBackoffMs: 30_000 };

/**
 * Opens the pools of the configuration. Their backends are probed from now on, and are not ready before they have
 * answered. @throws config_invalid if a key or certificate cannot be read
 */
export function openPools(options: OpenPoolsOptions): OpenPools {
  const closers: (() => Promise<void>)[] = [];
  const pools = Object.entries(options.config.gateway.pools).map(([name, config]) =>
    openPool({ ...options, name, pool: config, onClose: (close) => closers.push(close) }),
  );
  const timer = setInterval(() => pools.forEach((pool) => pool.tick()), TICK_MS).unref();
  return {
    table: new PoolTable(pools),
    closeQueues: () => pools.forEach(({ controller }) => controller.close()),
    close: async () => {
      clearInterval(timer);
      await Promise.all(closers.map((close) => close()));
    },
  };
}

interface PoolOptions extends OpenPoolsOptions {
  readonly name: string;
  readonly pool: PoolConfig;
  onClose(close: () => Promise<void>): void;
}

function openPool(options: PoolOptions): GatewayPool {
  const { name, pool: config, logger, now } = options;
  const { fairness, gateway } = options.config;
  const blocks = flowBlocksOf(gateway, config);
  const pending: { pool?: GatewayPool } = {};
  logger.info(
    {
      ...{ pool: name, models: config.models },
      backends: config.backends.map(({ url }) => redactUrl(url)),
      bounds: hasFixedBounds(blocks) ? 'fixed' : 'learnt',
    },
    'pool',
  );
  const backends = config.backends.map((backend) => {
    const opened: PoolBackend = openBackend(options, backend, () => {
      pending.pool?.onReadyChanged(opened);
    });
    return opened;
  });
  const pool = new GatewayPool({
    ...{ name, models: config.models, backends },
    listed: config.models.includes(ANY_MODEL) ? openModels(options, backends) : null,
    limits: { requestTimeoutMs: config.request_timeout, stallTimeoutMs: config.stall_timeout },
    settings: poolSettings(gateway, blocks),
    isStatic: hasFixedBounds(blocks),
    costs: new TokenCosts({ unitCost: blocks.fair_request_queue.unit_cost }),
    guard: new HarmGuard(),
    prefixes: new PrefixIndex(blocks.affinity.cache_tokens),
    readChain: createChainReader(),
    loadBound: blocks.affinity.load_bound,
    ports: {
      now,
      defer: setImmediate,
      weightOf: (tenant, model) => flowWeight(fairness, tenant, model),
      onError: (err) => logger.error({ err, pool: name }, 'flow control failed for a request'),
    },
  });
  pending.pool = pool;
  return pool;
}

/** Only the pool of `*` asks its backends: other pools name their models. */
function openModels(options: PoolOptions, backends: readonly PoolBackend[]): PoolModels {
  const { pool, now, onClose } = options;
  const sources = backends.map((backend, i): ModelSource => {
    const config = pool.backends[i];
    if (config === undefined) throw new RangeError(`the pool has no backend ${i}`);
    const { authorization, tls } = readGatewaySecrets(config, options.config.secrets_dir);
    const listing = openModelListing({
      ...{ url: config.url, authorization, tls, timeoutMs: pool.probe.timeout },
    });
    onClose(() => listing.close());
    return {
      get isReady() {
        return backend.isReady;
      },
      read: () => listing.read(),
    };
  });
  return new PoolModels(sources, now);
}

function openBackend(
  options: PoolOptions,
  backend: BackendConfig,
  onChange: () => void,
): PoolBackend {
  const { pool, name, now, logger } = options;
  const { gateway, secrets_dir: folder } = options.config;
  const blocks = flowBlocksOf(gateway, pool);
  const { authorization, tls } = readGatewaySecrets(backend, folder);
  const proxied = openProxiedBackend({
    ...{ url: backend.url, authorization, tls, connectTimeoutMs: pool.request_timeout },
    connections: connectionsOf(blocks),
  });
  const place = { pool: name, backend: redactUrl(backend.url) };
  /** Null before the first probe has ended, whose result is logged in any case. */
  let wasReady: boolean | null = null;
  const probe = new BackendProbe({
    ...{ url: backend.url, authorization, tls, path: pool.probe.path, fall: pool.probe.fall },
    metricsPath: pool.probe.metrics ? METRICS_PATH : null,
    intervalMs: pool.probe.interval,
    timeoutMs: pool.probe.timeout,
    onProbed: () => {
      const { isReady, reason } = probe;
      if (isReady === wasReady) return;
      wasReady = isReady;
      if (isReady) logger.info(place, 'backend ready');
      else logger.warn({ ...place, reason }, 'backend not ready');
      onChange();
    },
  });
  options.onClose(async () => {
    await Promise.all([probe.close(), proxied.close()]);
  });
  const breaker = createBreaker({
    ...BREAKER,
    probeTimeoutMs: pool.request_timeout,
    onChange: (state) => {
      logger.warn({ ...place, state }, 'circuit breaker of a backend changed');
      onChange();
    },
  });
  return new PoolBackend({
    proxied,
    probe,
    limit: new LearntLimit(blocks.adaptive),
    breaker,
    now,
  });
}

function connectionsOf(blocks: FlowBlocks): number {
  return hasFixedBounds(blocks) ? STATIC_CONNECTIONS : blocks.adaptive.max + SPARE_CONNECTIONS;
}
