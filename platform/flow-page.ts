/** Why a dispatched request was next. */
export type DispatchReason = 'bypass' | 'queue' | 'floor' | 'promoted';

/** What `GET /admin/flow` of the gateway answers (docs/gateway.md#admin-flow). Times are in ms. */
export interface FlowPage {
  /** Bytes that are reserved for bodies that arrive. */
  readonly receiving_bytes: number;
  readonly pools: readonly FlowPagePool[];
}

/** One pool. */
export interface FlowPagePool {
  readonly name: string;
  readonly models: readonly string[];
  /** Requests in flight, and their expected cost. */
  readonly stock: { readonly requests: number; readonly cost: number };
  /** `learnt`: the watermark is the sum of the backends' limits, which users may exceed up to the other two. */
  readonly bounds: {
    readonly mode: 'learnt' | 'fixed';
    readonly lower: number;
    readonly watermark: number;
    readonly upper: number;
  };
  /** Settings of the pool that those of its workers depend on. */
  readonly limits: {
    readonly request_timeout_ms: number;
    readonly batch_queue_ttl_ms: number;
    readonly sheddable_capacity: number;
  };
  readonly saturation: number;
  readonly queued_cost: number;
  readonly queued_bytes: number;
  /** Flows with waiting requests. */
  readonly active_flows: number;
  /** Requests of batches that may be in flight, besides the ceiling of their band; null if there is no cap. */
  readonly sheddable_cap: number | null;
  readonly bands: Readonly<Record<'critical' | 'standard' | 'sheddable', FlowPageBand>>;
  readonly backends: readonly FlowPageBackend[];
  /** What the cap is decided by: streams above `sheddable`, by size of their prompts. Only sizes with streams. */
  readonly ttfb: readonly FlowPageTtfb[];
  /** The longest flows, at most 200. */
  readonly flows: readonly FlowPageFlow[];
}

/** One band of a pool. */
export interface FlowPageBand {
  readonly queued: number;
  readonly in_flight: number;
  /** How long the oldest request waits; null if none waits. */
  readonly oldest_ms: number | null;
  /** Part of the cost that was dispatched in the last 10 s, 0 to 1. */
  readonly share: number;
  /** Requests that were dispatched since the start. */
  readonly dispatched: Readonly<Record<DispatchReason, number>>;
}

/** One model server of a pool. */
export interface FlowPageBackend {
  /** Its URL without secrets. */
  readonly url: string;
  /** `paused`: by its `Retry-After`. `busy`: it takes no requests of batches now. */
  readonly state: 'ready' | 'busy' | 'paused' | 'not_ready';
  /** Why it is not `ready`; null if it is. */
  readonly reason: string | null;
  readonly limit: number;
  readonly in_flight: number;
  readonly cost: number;
  /** Median time to the first byte of the last streams above `sheddable`; null if there were too few. */
  readonly ttfb_ms: number | null;
  /** The lowest median of a minute in the last ten. */
  readonly ttfb_base_ms: number | null;
}

/** Times to first byte of one size of prompts. */
export interface FlowPageTtfb {
  /** Null for the longest prompts. */
  readonly max_prompt_tokens: number | null;
  readonly now_ms: number | null;
  readonly base_ms: number | null;
}

/** One flow: the requests of one tenant for one model in one band. */
export interface FlowPageFlow {
  readonly band: 'critical' | 'standard' | 'sheddable';
  readonly tenant: string;
  readonly model: string;
  readonly weight: number;
  readonly queued: number;
  readonly in_flight: number;
  readonly oldest_ms: number | null;
  /** Tokens of its requests that ended in the last minute. */
  readonly tokens_60s: number;
}
