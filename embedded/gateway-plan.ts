import { findSettings, type Config, type ConfigSources } from '../platform/config';
import { flowBlocksOf } from '../platform/config-flow-blocks';
import { formatDuration } from '../platform/units';
import type { PortPicker } from './locks/ports';
import { urlHost } from './url-host';

/** Which of simulator and gateway a stack starts. */
export interface ModelSide {
  readonly simulator: boolean;
  readonly gateway: boolean;
  /** Whether the worker sends its requests to the embedded gateway. */
  readonly isWorkerBehindGateway: boolean;
}

/** What the user asked for with flags. */
export interface ModelSideFlags {
  readonly simulator: boolean;
  readonly gateway: boolean;
}

/**
 * Decides what to start on the side of the model servers (docs/design/embedded-stack.md#gateway). A configured
 * inference gateway or pool replaces the simulator. The gateway starts if it has a pool: a configured one, or the
 * simulator.
 */
export function decideModelSide(sources: ConfigSources, flags: ModelSideFlags): ModelSide {
  const set = findSettings(sources, [
    'global_inference_gateway',
    'model_gateways',
    'gateway.pools',
  ]);
  const isConfigured = set.has('global_inference_gateway') || set.has('model_gateways');
  const hasPools = flags.gateway && set.has('gateway.pools');
  const simulator = flags.simulator && !isConfigured && !hasPools;
  const gateway = flags.gateway && (hasPools || simulator);
  return { simulator, gateway, isWorkerBehindGateway: gateway && !isConfigured };
}

/**
 * Slots of the embedded simulator. They make it an engine: it answers token by token, and what is more than it can
 * run has to wait. With these, a batch is about as fast as with a model server of a fixed latency of 50 ms and ten
 * requests in flight, and an answer takes 0.15 to 0.25 s.
 */
export const SIMULATOR_SLOTS = 64;

/** What the settings of the model side are made from. */
export interface ModelSidePlaces {
  readonly side: ModelSide;
  readonly simulatorPort: number;
  /** Of the simulator's audio worker. */
  readonly audioPort: number;
  readonly gatewayPort: number;
  /** File with the token of workers, unless the settings name another one. */
  readonly workerToken: string;
  /** Directory for large bodies of audio routes. */
  readonly spoolDir: string;
  /** The gateway's settings as they will be; null while they are not known yet. */
  readonly gateway: Config['gateway'] | null;
  /** Further settings of a stack with the simulator, from its base URL. */
  readonly simulatorSettings?: ((url: string) => Record<string, unknown>) | undefined;
}

const LOOPBACK = '127.0.0.1';
const SHUTDOWN_GRACE = '500ms';
/** Half of the permits' requests run, and the other half waits to follow them. */
const PERMITS = 2 * SIMULATOR_SLOTS;

/** Settings of gateway and worker, which the user's settings override. */
export function modelSideSettings(places: ModelSidePlaces): Record<string, unknown> {
  const { simulator, gateway, isWorkerBehindGateway } = places.side;
  const simulatorUrl = `http://${LOOPBACK}:${places.simulatorPort}`;
  const further = simulator ? (places.simulatorSettings?.(simulatorUrl) ?? {}) : {};
  if (!gateway) {
    return simulator ? { global_inference_gateway: { url: simulatorUrl }, ...further } : {};
  }
  const pool = {
    models: ['*'],
    backends: [{ url: simulatorUrl }],
    // What the simulator takes is known. More would wait inside it, where users and batches are equal.
    adaptive: { initial: SIMULATOR_SLOTS, max: SIMULATOR_SLOTS },
  };
  return {
    gateway: {
      worker_token_file: places.workerToken,
      ...(simulator
        ? {
            pools: { simulator: pool },
            audio: {
              workers: [{ address: `${LOOPBACK}:${places.audioPort}` }],
              spool: { dir: places.spoolDir },
              // Drain budgets of development are short.
              scheduler: { shutdown_grace: SHUTDOWN_GRACE },
            },
          }
        : {}),
    },
    ...(simulator ? { concurrency: { global: PERMITS, per_model: PERMITS } } : {}),
    ...(isWorkerBehindGateway ? { global_inference_gateway: wayThrough(places) } : {}),
    ...further,
  };
}

/** How the worker sends through the embedded gateway. */
function wayThrough({ gateway, gatewayPort, workerToken }: ModelSidePlaces): object {
  return {
    url: `http://${urlHost(gateway?.host ?? LOOPBACK)}:${gatewayPort}`,
    api_key_file: gateway?.worker_token_file ?? workerToken,
    ...(gateway === null ? {} : { request_timeout: formatDuration(requestTimeoutMs(gateway)) }),
    inference_objective: 'batch',
    send_fairness_header: true,
  };
}

const MARGIN_MS = 1_000;

/**
 * The time of a worker's request includes that in the queue. With this sum, the gateway ends a request to a slow
 * server before the worker does, and the queue takes less than half of it (docs/gateway.md#set-up).
 */
function requestTimeoutMs(gateway: Config['gateway']): number {
  const sums = Object.values(gateway.pools).map((pool) => {
    const { batch_queue_ttl: queueMs } = flowBlocksOf(gateway, pool).fair_request_queue;
    return Math.max(pool.request_timeout, queueMs + MARGIN_MS) + queueMs;
  });
  return Math.max(...sums);
}

/** The port of the gateway: the one that is set, if the API must get its own, or the next free one. */
export async function chooseGatewayPort(
  { gateway }: Pick<Config, 'gateway'>,
  options: GatewayPortOptions,
): Promise<number> {
  const { sources, picker, apiPort } = options;
  const isSet = findSettings(sources, ['gateway.port']).size > 0;
  if (!isSet || apiPort === 'next free') return picker.next(gateway.host, gateway.port);
  const hint = 'set gateway.port to another one, or stop the process that listens there';
  return picker.exactly(gateway.host, gateway.port, hint);
}

interface GatewayPortOptions {
  readonly sources: ConfigSources;
  readonly picker: PortPicker;
  readonly apiPort: 'exactly' | 'next free';
}
