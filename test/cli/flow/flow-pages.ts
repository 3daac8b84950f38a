import type {
  FlowPage,
  FlowPageBackend,
  FlowPageBand,
  FlowPageFlow,
  FlowPagePool,
} from '../../../platform/flow-page';

type Parts<T> = { readonly [K in keyof T]?: T[K] };

export function band(parts: Parts<FlowPageBand> = {}): FlowPageBand {
  const dispatched = { bypass: 0, queue: 0, floor: 0, promoted: 0 };
  return { queued: 0, in_flight: 0, oldest_ms: null, share: 0, dispatched, ...parts };
}

export function backend(parts: Parts<FlowPageBackend> = {}): FlowPageBackend {
  return {
    ...{ url: 'http://vllm-0:8000', state: 'ready', reason: null, limit: 8, in_flight: 0 },
    ...{ cost: 0, ttfb_ms: null, ttfb_base_ms: null },
    ...parts,
  };
}

export function flow(parts: Parts<FlowPageFlow> = {}): FlowPageFlow {
  return {
    ...{ band: 'standard', tenant: 'acme', model: 'llama', weight: 1, queued: 0 },
    ...{ in_flight: 0, oldest_ms: null, tokens_60s: 0 },
    ...parts,
  };
}

export function pool(parts: Parts<FlowPagePool> = {}): FlowPagePool {
  return {
    ...{ name: 'main', models: ['*'], stock: { requests: 6, cost: 900 } },
    bounds: { mode: 'learnt', lower: 10, watermark: 8, upper: 10 },
    ...{ saturation: 0.75, queued_cost: 12_345, queued_bytes: 1_400_000, active_flows: 2 },
    sheddable_cap: 7,
    limits: { request_timeout_ms: 300_000, batch_queue_ttl_ms: 60_000, sheddable_capacity: 900 },
    bands: { critical: band(), standard: band(), sheddable: band() },
    ...{ backends: [backend()], ttfb: [], flows: [] },
    ...parts,
  };
}

export function page(...pools: readonly FlowPagePool[]): FlowPage {
  return { receiving_bytes: 0, pools };
}
