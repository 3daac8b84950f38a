import { WATERMARK } from '../core/dispatch/pool/gate';
import { audioRules } from './config-audio-rules';
import {
  flowBlocksOf,
  hasFixedBounds,
  type FlowBlocks,
  type OwnFlowBlocks,
} from './config-flow-blocks';
import type { FlowConfig } from './config-gateway';
import type { RuleBreak } from './config-rule';
import { joinPath, withoutTrailingSlashes } from './http-client/base-url';

type Rule = readonly [isBroken: boolean, path: string, message: string];

/**
 * The broken rules between settings of the gateway (docs/configuration.md#gateway).
 *
 * @param isNeeded whether the gateway itself reads the settings, so that it needs a pool
 */
export function gatewaySectionRules(gateway: FlowConfig, isNeeded: boolean): RuleBreak[] {
  const rules: Rule[] = [
    ...blockRules(gateway, gateway.replicas),
    ...byteRules(gateway),
    ...arrivalRules(gateway),
    ...poolRules(gateway, isNeeded),
    ...ownBlockRules(gateway),
    ...audioRules(gateway.audio, gateway.drain_budget),
  ];
  return rules.flatMap(([isBroken, path, message]) =>
    isBroken ? [{ path: ['gateway', ...path.split('/')], message }] : [],
  );
}

/** The rules for one set of blocks, with paths below the section or the pool that holds them. */
function blockRules(blocks: FlowBlocks, replicas: number): Rule[] {
  return [
    ...capacityRules(blocks),
    ...boundRules(blocks),
    ...bandRules(blocks),
    ...replicaRules(blocks, replicas),
  ];
}

/** What is broken by the blocks of a pool, and not reported for the whole gateway. */
function ownBlockRules(gateway: FlowConfig): Rule[] {
  const { replicas, pools } = gateway;
  const ofAll = blockRules(gateway, replicas).filter(([isBroken]) => isBroken);
  const isReported = (path: string) => ofAll.some(([, reported]) => reported === path);
  return Object.entries(pools).flatMap(([name, pool]): Rule[] => [
    ...blockRules(flowBlocksOf(gateway, pool), replicas).map(([isBroken, path, message]): Rule => {
      const isNews = setsKey(pool, path) || !isReported(path);
      return [isBroken && isNews, `pools/${name}/${path}`, message];
    }),
    [
      replicas > 1 && !hasFixedBounds(flowBlocksOf(gateway, pool)),
      'replicas',
      `must be 1, because the bounds of the pool ${name} are learnt: set its request_queue_controller.watermark_per_backend`,
    ],
  ]);
}

function setsKey(pool: OwnFlowBlocks, path: string): boolean {
  const [block, key = ''] = path.split('/');
  const own = Object.entries(pool).find(([name]) => name === block)?.[1];
  return typeof own === 'object' && Object.hasOwn(own, key);
}

function capacityRules({ fair_request_queue: queue }: FlowBlocks): Rule[] {
  const { total_capacity: total, sheddable_capacity: batches } = queue;
  const at = (key: string) => `fair_request_queue/${key}`;
  const above = `must not exceed total_capacity, ${total}`;
  return [
    [queue.flow_capacity > total, at('flow_capacity'), above],
    [batches !== 'auto' && batches > total, at('sheddable_capacity'), above],
    ...notZero(queue, ['queue_ttl', 'batch_queue_ttl', 'no_backend_ttl'], 'fair_request_queue/'),
  ];
}

function byteRules(gateway: FlowConfig): Rule[] {
  const { queue_bytes: all, sheddable_bytes: sheddable } = gateway;
  return [
    [
      sheddable < gateway.max_body_bytes,
      'sheddable_bytes',
      'must be at least gateway.max_body_bytes, because a larger request of a batch could never be received',
    ],
    [
      all < sheddable + gateway.max_body_bytes,
      'queue_bytes',
      'must be at least gateway.sheddable_bytes and gateway.max_body_bytes together, so that batches leave room for one more body',
    ],
  ];
}

/** Each of several gateways gets its part, and at least one request (docs/design/gateway.md#several-gateways). */
function replicaRules(blocks: FlowBlocks, replicas: number): Rule[] {
  const { fair_request_queue: queue, request_queue_controller: controller } = blocks;
  const parts: (readonly [path: string, value: number | undefined])[] = [
    ['fair_request_queue/total_capacity', queue.total_capacity],
    ['fair_request_queue/flow_capacity', queue.flow_capacity],
    [
      'fair_request_queue/sheddable_capacity',
      queue.sheddable_capacity === 'auto' ? undefined : queue.sheddable_capacity,
    ],
    [
      'request_queue_controller/watermark_per_backend',
      hasFixedBounds(blocks) ? (controller.watermark_per_backend ?? WATERMARK) : undefined,
    ],
    ['request_queue_controller/max_in_flight_per_flow', controller.max_in_flight_per_flow],
  ];
  return parts.map(([path, value = replicas]) => [
    value < replicas,
    path,
    `must be at least gateway.replicas, ${replicas}`,
  ]);
}

function boundRules({ request_queue_controller: controller, adaptive }: FlowBlocks): Rule[] {
  const { watermark_per_backend: watermark = WATERMARK } = controller;
  const { percentage_deviation_for_bounds: deviation } = controller;
  const { lower_bound_per_backend: lower = 0, upper_bound_per_backend: upper = Infinity } =
    controller;
  const at = (key: string) => `request_queue_controller/${key}`;
  return [
    [
      lower > watermark,
      at('lower_bound_per_backend'),
      `must not exceed the watermark, ${watermark}`,
    ],
    [
      upper < watermark,
      at('upper_bound_per_backend'),
      `must be at least the watermark, ${watermark}`,
    ],
    [
      deviation === 0 || deviation === 1,
      at('percentage_deviation_for_bounds'),
      'must be between 0 and 1, both excluded',
    ],
    ...notZero(controller, ['expiry_cleanup_interval'], 'request_queue_controller/'),
    [adaptive.min > adaptive.initial, 'adaptive/initial', `must be at least min, ${adaptive.min}`],
    [
      adaptive.initial > adaptive.max,
      'adaptive/max',
      `must be at least initial, ${adaptive.initial}`,
    ],
  ];
}

function bandRules({ bands: { ceilings, promote_after: promoteAfter } }: FlowBlocks): Rule[] {
  const [critical, standard, sheddable] = ceilings;
  return [
    [
      critical < standard || standard < sheddable,
      'bands/ceilings',
      'must not rise from critical to standard to sheddable',
    ],
    [sheddable === 0, 'bands/ceilings', 'must all be above 0'],
    [promoteAfter === 0, 'bands/promote_after', 'must be longer than 0'],
  ];
}

function arrivalRules(gateway: FlowConfig): Rule[] {
  return [
    ...notZero(gateway, ['header_timeout', 'body_grace'], ''),
    [gateway.max_body_bytes === 0, 'max_body_bytes', 'must be at least 1'],
  ];
}

function poolRules({ pools, audio }: FlowConfig, isNeeded: boolean): Rule[] {
  const owners = new Map<string, string>();
  const rules: Rule[] = Object.entries(pools).flatMap(([name, pool]): Rule[] => {
    const at = `pools/${name}/`;
    const urls = pool.backends.map(({ url }) => serverOf(url));
    return [
      ...pool.models.map((model): Rule => {
        const owner = owners.get(model);
        owners.set(model, name);
        return [owner !== undefined, `${at}models`, `${model} is already in the pool ${owner}`];
      }),
      [new Set(urls).size < urls.length, `${at}backends`, 'names a URL twice'],
      ...notZero(pool, ['request_timeout', 'stall_timeout'], at),
      ...notZero(pool.probe, ['interval', 'timeout'], `${at}probe/`),
      ...pool.backends.flatMap((backend, i) => backendRules(backend, `${at}backends/${i}/`)),
    ];
  });
  const isEmpty = isNeeded && Object.keys(pools).length === 0 && audio === undefined;
  return [...rules, [isEmpty, 'pools', 'required: name a pool with its models and backends']];
}

/** Equal for URLs that reach the same server in the same way. */
function serverOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + joinPath(withoutTrailingSlashes(pathname), '/v1/');
}

function backendRules(
  backend: FlowConfig['pools'][string]['backends'][number],
  at: string,
): Rule[] {
  const { username, password } = new URL(backend.url);
  const { tls_client_cert_file: cert, tls_client_key_file: key } = backend;
  return [
    [
      username !== '' || password !== '',
      `${at}url`,
      'user and password in the URL are not sent: remove them and set api_key_name or api_key_file',
    ],
    [
      backend.api_key_name !== undefined && backend.api_key_file !== undefined,
      `${at}api_key_file`,
      'set only one of api_key_name and api_key_file',
    ],
    [
      (cert === undefined) !== (key === undefined),
      `${at}tls_client_cert_file`,
      'a client certificate needs both tls_client_cert_file and tls_client_key_file',
    ],
  ];
}

function notZero<K extends string>(
  section: Readonly<Record<K, number>>,
  keys: readonly K[],
  at: string,
): Rule[] {
  return keys.map((key) => [section[key] === 0, at + key, 'must be longer than 0']);
}
