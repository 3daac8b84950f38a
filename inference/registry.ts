import { createBreaker, type Breaker } from '../core/dispatch/breaker';
import { NightshiftError } from '../core/errors';
import type { Config, GatewayConfig } from '../platform/config-schema';
import type { Backend } from './backend';
import type { GatewayLimit } from './dispatcher';
import { createHttpBackend } from './http-backend';
import { readGatewaySecrets } from './secrets';

/** The gateway that the requests of one model go to. */
export interface Route {
  /** `default`, or the first configured model of this gateway: names its queue and metrics. */
  readonly key: string;
  /** The key of the per-model limit: the model's name, also if models share a gateway. */
  readonly limiterKey: string;
  /** The limit that all models of the gateway share (`max_concurrency`); absent if it has none. */
  readonly gatewayLimit?: GatewayLimit;
  readonly backend: Backend;
  readonly gateway: GatewayConfig;
  readonly breaker: Breaker;
}

/** All configured gateways, and the route of each model. */
export interface Registry {
  /** The route of `model`, or null if no gateway serves it (`model_not_found`). */
  route(model: string): Route | null;
  isRouted(model: string): boolean;
  /** One entry per gateway, for gauges and queues; models that share settings share an entry. */
  readonly gateways: readonly GatewayRoute[];
  /** Waits for requests in flight, then closes all connections. */
  close(): Promise<void>;
}

/** A gateway and the models that were configured for it. */
export interface GatewayRoute extends Omit<Route, 'limiterKey' | 'gatewayLimit'> {
  /** Models that are listed for this gateway; empty in global mode. */
  readonly models: readonly string[];
}

/** The settings that the registry reads. */
export type RegistryConfig = Pick<
  Config,
  'global_inference_gateway' | 'model_gateways' | 'secrets_dir' | 'concurrency' | 'limits'
> &
  Partial<Pick<Config, 'delegates'>>;

/** Called when the breaker of a gateway opens or closes; `gateway` is its key. */
export type OnBreaker = (gateway: string, state: Breaker['state']) => void;

/**
 * Opens the gateways of the configuration (docs/design/configuration.md#gateway-modes). Global mode:
 * every model goes to the one gateway. Per-model mode: only listed models are routed; entries with equal
 * settings share connections, breaker and `max_concurrency`. Each model has a limit of its own. Keys and
 * certificates are read here, once.
 * An installation that only delegates has none.
 * @throws config_invalid unless exactly one mode is configured and every named file can be read
 */
export function createRegistry(config: RegistryConfig, onBreaker?: OnBreaker): Registry {
  const { global_inference_gateway: global, model_gateways: perModel } = config;
  const isDelegated = Object.keys(config.delegates ?? {}).length > 0;
  const modes = [global, perModel].filter((mode) => mode !== undefined).length;
  if (modes > 1 || (modes === 0 && !isDelegated)) {
    const message = 'set exactly one of global_inference_gateway and model_gateways';
    throw new NightshiftError('config_invalid', message);
  }
  const open = (entry: GatewayEntry) => openGateway(config, { ...entry, onBreaker });
  return global === undefined
    ? perModelRegistry(perModel ?? {}, open)
    : globalRegistry(open({ key: 'default', gateway: global, models: [] }));
}

/** The registry of a process that sends no requests. */
export const NO_GATEWAYS: Registry = {
  route: () => null,
  isRouted: () => false,
  gateways: [],
  close: () => Promise.resolve(),
};

type GatewayEntry = Pick<GatewayRoute, 'key' | 'gateway' | 'models'>;

function globalRegistry(only: GatewayRoute): Registry {
  const { key, gateway, backend, breaker } = only;
  return {
    route: (model) => ({ key, ...limitsOf(model, gateway), backend, gateway, breaker }),
    isRouted: () => true,
    gateways: [only],
    close: () => backend.close(),
  };
}

function perModelRegistry(
  entries: Readonly<Record<string, GatewayConfig>>,
  open: (entry: GatewayEntry) => GatewayRoute,
): Registry {
  const groups = new Map<string, { key: string; gateway: GatewayConfig; models: string[] }>();
  for (const [model, gateway] of Object.entries(entries)) {
    const settings = settingsKey(gateway);
    const group = groups.get(settings);
    if (group) group.models.push(model);
    else groups.set(settings, { key: model, gateway, models: [model] });
  }
  const gateways = [...groups.values()].map(open);
  const routes = new Map<string, Route>();
  for (const { models, ...route } of gateways) {
    for (const model of models) routes.set(model, { ...route, ...limitsOf(model, route.gateway) });
  }
  return {
    route: (model) => routes.get(model) ?? null,
    isRouted: (model) => routes.has(model),
    gateways,
    close: async () => {
      await Promise.all(gateways.map(({ backend }) => backend.close()));
    },
  };
}

function openGateway(
  config: RegistryConfig,
  { onBreaker, ...entry }: GatewayEntry & { onBreaker: OnBreaker | undefined },
): GatewayRoute {
  const { key, gateway } = entry;
  const backend = createHttpBackend(gateway, {
    secrets: readGatewaySecrets(gateway, config.secrets_dir),
    connections: config.concurrency.global,
    maxAnswerBytes: config.limits.max_answer_bytes,
  });
  const breaker = createBreaker({
    initialBackoffMs: gateway.initial_backoff,
    maxBackoffMs: gateway.max_backoff,
    probeTimeoutMs: gateway.request_timeout + 60_000,
    onChange: (state) => onBreaker?.(key, state),
  });
  return { ...entry, backend, breaker };
}

function limitsOf(
  model: string,
  gateway: GatewayConfig,
): Pick<Route, 'limiterKey' | 'gatewayLimit'> {
  const { max_concurrency: limit } = gateway;
  if (limit === undefined) return { limiterKey: model };
  return { limiterKey: model, gatewayLimit: { key: settingsKey(gateway), limit } };
}

/** A key that is equal for equal settings, in any order of their names. */
function settingsKey(gateway: GatewayConfig): string {
  return JSON.stringify(Object.entries(gateway).sort(([a], [b]) => (a < b ? -1 : 1)));
}
