import { LOAD_BOUND } from '../../../core/dispatch/backends/backend-choice';
import { HarmGuard } from '../../../core/dispatch/backends/harm-guard';
import { LearntLimit } from '../../../core/dispatch/backends/learnt-limit';
import { PrefixIndex } from '../../../core/dispatch/backends/prefix-index';
import { createBreaker } from '../../../core/dispatch/breaker';
import { TokenCosts } from '../../../core/dispatch/cost';
import { POOL_DEFAULTS } from '../../../core/dispatch/pool/pool-settings';
import { BAND, type Band } from '../../../core/dispatch/queue/band';
import { QueuedRequest } from '../../../core/dispatch/queue/queued-request';
import { GatewayPool } from '../../../gateway/pools/gateway-pool';
import { PoolBackend } from '../../../gateway/pools/pool-backend';
import type { ProxiedBackend } from '../../../inference/proxy/proxied-backend';
import type { RequestEvents, VirtualEngine, VirtualRequest } from './virtual-engine';

const NO_PROMPT = { bytes: Buffer.alloc(0), ranges: [] };
const BYTES_PER_TOKEN = 4;

/** Where requests are sent. */
export interface Pool {
  submit(request: VirtualRequest, band: Band, events: RequestEvents): void;
  tick(): void;
  /** Sheddable requests that the engines have. */
  readonly batchInFlight: number;
}

/** Engines without control: requests are sent to them in turn. */
export class DirectPool implements Pool {
  readonly #engines: readonly VirtualEngine[];
  #turn = 0;
  batchInFlight = 0;

  constructor(engines: readonly VirtualEngine[]) {
    this.#engines = engines;
  }

  submit(request: VirtualRequest, band: Band, { onFirstToken, onEnd }: RequestEvents): void {
    const own = Number(band === BAND.sheddable);
    this.batchInFlight += own;
    this.#engines[this.#turn++ % this.#engines.length]?.submit(request, {
      onFirstToken,
      onEnd: () => {
        this.batchInFlight -= own;
        onEnd();
      },
    });
  }

  tick(): void {
    // Nothing waits here.
  }
}

/** The pool of a gateway with its limits, in virtual time: what `gateway/requests` does, without connections. */
export class ControlledPool implements Pool {
  readonly pool: GatewayPool;
  readonly #engines: Map<string, VirtualEngine>;
  readonly #now: () => number;
  batchInFlight = 0;

  constructor(
    engines: readonly VirtualEngine[],
    { now, defer }: { readonly now: () => number; readonly defer: (run: () => void) => void },
  ) {
    this.#now = now;
    this.#engines = new Map(engines.map((engine, i) => [String(i), engine]));
    this.pool = new GatewayPool({
      ...{
        name: 'pool',
        models: ['*'],
        listed: null,
        limits: { requestTimeoutMs: 3e5, stallTimeoutMs: 6e4 },
      },
      backends: [...this.#engines.keys()].map((id) => backendOf(id, now)),
      settings: POOL_DEFAULTS,
      costs: new TokenCosts({ unitCost: false }),
      isStatic: false,
      guard: new HarmGuard(),
      prefixes: new PrefixIndex(0),
      readChain: () => ({ blocks: new Uint32Array(0), from: 0, length: 0 }),
      loadBound: LOAD_BOUND,
      ports: {
        ...{ now, defer },
        onError: (error) => {
          throw error;
        },
      },
    });
  }

  tick(): void {
    this.pool.tick();
  }

  submit(request: VirtualRequest, band: Band, events: RequestEvents): void {
    const { controller } = this.pool;
    const size = { promptBytes: request.promptTokens * BYTES_PER_TOKEN, maxTokens: null };
    const flow = controller.flowOf(band, TENANTS[band], 'model');
    const cost = this.pool.costs.expected(size, flow.output);
    const options = { tenant: TENANTS[band], model: 'model', band, cost };
    const queued = new QueuedRequest(options, {
      dispatched: () => this.#send(queued, request, events),
      // A worker sends a dropped line again.
      dropped: () => this.submit(request, band, events),
    });
    controller.tryEnqueue(queued);
  }

  #send(queued: QueuedRequest, request: VirtualRequest, events: RequestEvents): void {
    const { pool } = this;
    const { band, tenant, model } = queued;
    const backend = pool.choose({ band, prompt: NO_PROMPT, tried: new Set() });
    const engine = this.#engines.get(backend?.id ?? '');
    if (backend === null || engine === undefined) throw new Error('no backend has room');
    const sending = backend.begin({ requestId: 'id', cost: queued.cost, band });
    const { promptTokens } = request;
    const sentMs = this.#now();
    const own = Number(band === BAND.sheddable);
    this.batchInFlight += own;
    engine.submit(request, {
      onFirstToken: () => {
        const nowMs = this.#now();
        events.onFirstToken();
        if (band === BAND.sheddable) return;
        pool.guard.onFirstByte({ promptTokens, ttfbMs: nowMs - sentMs, nowMs });
      },
      onEnd: () => {
        const usage = { inputTokens: promptTokens, outputTokens: request.outputTokens };
        backend.end(sending, { end: ANSWERED, work: request.outputTokens, pauseMs: 0 });
        pool.refresh();
        this.batchInFlight -= own;
        const { output } = pool.controller.flowOf(band, tenant, model);
        pool.controller.onRequestComplete(queued, this.pool.costs.real(usage, output));
        events.onEnd();
      },
    });
  }
}

const TENANTS = ['vip', 'users', 'batches'] as const;

const ANSWERED = {
  ...{ outcome: 'answered', status: 200, isHeadSent: true, usage: null, events: 0 },
} as unknown as Parameters<PoolBackend['end']>[1]['end'];

function backendOf(id: string, now: () => number): PoolBackend {
  return new PoolBackend({
    proxied: { url: id } as ProxiedBackend,
    probe: {
      isReady: true,
      reason: null,
      load: null,
      onAnswered: () => undefined,
      onRefused: () => undefined,
    },
    limit: new LearntLimit(),
    breaker: createBreaker({
      ...{ initialBackoffMs: 1_000, maxBackoffMs: 30_000, probeTimeoutMs: 60_000 },
      onChange: () => undefined,
    }),
    now,
  });
}
