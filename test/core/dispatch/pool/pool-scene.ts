import type { DropCode } from '../../../../core/dispatch/drop-codes';
import type { PoolState } from '../../../../core/dispatch/pool/gate';
import type { PoolSettings } from '../../../../core/dispatch/pool/pool-settings';
import {
  RequestQueueController,
  type ControllerPorts,
} from '../../../../core/dispatch/pool/request-queue-controller';
import { BAND, type Band } from '../../../../core/dispatch/queue/band';
import {
  QueuedRequest,
  type DispatchedBy,
  type RequestOptions,
  type RequestOwner,
} from '../../../../core/dispatch/queue/queued-request';

/** Something that happened to a request. */
export interface Outcome {
  readonly request: QueuedRequest;
  readonly what: DispatchedBy | DropCode;
  readonly atMs: number;
}

/** Called before the scene's own lists change, so that it sees what the controller saw. */
export interface SceneChecks {
  dispatched?(request: QueuedRequest, by: DispatchedBy): void;
  dropped?(request: QueuedRequest, code: DropCode): void;
}

/** A controller with a clock of its own, beside plain lists of what must be queued and in flight. */
export class PoolScene {
  nowMs = 1_000_000;
  readonly controller: RequestQueueController;
  readonly settings: PoolSettings;
  readonly outcomes: Outcome[] = [];
  readonly errors: unknown[] = [];
  readonly reclaimed: QueuedRequest[] = [];
  pool: PoolState = { readyBackends: 0, limit: 0, sheddableCap: Infinity };
  accepted = 0;
  readonly bandOnArrival = new Map<QueuedRequest, Band>();
  queued: QueuedRequest[] = [];
  inFlight: QueuedRequest[] = [];
  /** The request that is being handed over. */
  newcomer: QueuedRequest | null = null;
  readonly deferred: (() => void)[] = [];
  readonly #checks: SceneChecks;

  constructor(
    settings: PoolSettings,
    { checks = {}, ports = {} }: { checks?: SceneChecks; ports?: Partial<ControllerPorts> } = {},
  ) {
    this.settings = settings;
    this.#checks = checks;
    this.controller = new RequestQueueController(settings, {
      now: () => this.nowMs,
      defer: (resume) => this.deferred.push(resume),
      onError: (error) => this.errors.push(error),
      ...ports,
    });
  }

  setPool(pool: Partial<PoolState>): void {
    this.pool = { ...this.pool, ...pool };
    this.controller.updatePool(this.pool);
    this.settle();
  }

  /** Hands over a request, by default of band `standard`, tenant `t` and cost 1. */
  arrive(
    options: Partial<RequestOptions> = {},
    owner: RequestOwner = this.#owner(),
  ): QueuedRequest {
    const request = new QueuedRequest({ tenant: 't', model: 'm', cost: 1, ...options }, owner);
    this.accepted++;
    this.bandOnArrival.set(request, request.band);
    this.newcomer = request;
    this.controller.tryEnqueue(request);
    this.newcomer = null;
    if (request.state === 'queued') this.#noteQueued(request);
    this.settle();
    return request;
  }

  end(request: QueuedRequest, cost = request.cost): void {
    this.inFlight = this.inFlight.filter((one) => one !== request);
    this.controller.onRequestComplete(request, cost);
    this.settle();
  }

  cancel(request: QueuedRequest): boolean {
    return this.controller.cancel(request);
  }

  /** Lets time pass, with a tick every 100 ms. */
  advance(ms: number): void {
    for (const untilMs = this.nowMs + ms; this.nowMs < untilMs;) {
      const nextTickMs = (Math.floor(this.nowMs / 100) + 1) * 100;
      this.nowMs = Math.min(untilMs, nextTickMs);
      if (this.nowMs === nextTickMs) this.controller.tick();
      this.settle();
    }
  }

  /** Runs everything that was deferred. */
  settle(): void {
    for (let resume = this.deferred.shift(); resume; resume = this.deferred.shift()) resume();
  }

  /** What happened, as text: equal for equal runs. */
  get trace(): string {
    return this.outcomes
      .map(({ request, what, atMs }) => `${atMs} ${request.tenant} ${request.cost} ${what}`)
      .join('\n');
  }

  count(what: DispatchedBy | DropCode): number {
    return this.outcomes.filter((one) => one.what === what).length;
  }

  /** Dispatched cost of a band in the last 10 s, as the product counts it: in slots of 100 ms. */
  share(counts: (one: Outcome) => boolean): number {
    const sinceMs = (Math.floor(this.nowMs / 100) - 99) * 100;
    const recent = this.outcomes.filter(({ what, atMs }) => atMs >= sinceMs && isDispatch(what));
    const costOf = (outcomes: Outcome[]) =>
      outcomes.reduce((sum, { request }) => sum + request.cost, 0);
    const total = costOf(recent);
    return total === 0 ? 0 : costOf(recent.filter(counts)) / total;
  }

  /** The part of all dispatched cost, if cost fades with a time constant of 30 s. */
  fadingShare(counts: (one: Outcome) => boolean): number {
    const sum = { own: 0, all: 0 };
    for (const one of this.outcomes.filter(({ what }) => isDispatch(what))) {
      const cost = one.request.cost * Math.exp((one.atMs - this.nowMs) / 30_000);
      sum.all += cost;
      if (counts(one)) sum.own += cost;
    }
    return sum.all === 0 ? 0 : sum.own / sum.all;
  }

  #owner() {
    return {
      dispatched: (request: QueuedRequest, by: DispatchedBy) => {
        this.#noteQueued(this.newcomer);
        this.#checks.dispatched?.(request, by);
        this.#note(request, by);
        this.inFlight.push(request);
      },
      dropped: (request: QueuedRequest, code: DropCode) => {
        this.#noteQueued(this.newcomer);
        this.#checks.dropped?.(request, code);
        this.#note(request, code);
      },
      reclaimed: (request: QueuedRequest) => void this.reclaimed.push(request),
    };
  }

  /** A newcomer may be queued while its hand-over still runs. */
  #noteQueued(request: QueuedRequest | null): void {
    if (
      request !== null &&
      request.queuedAtMs > 0 &&
      request.state !== 'ended' &&
      !this.queued.includes(request)
    ) {
      if (!this.inFlight.includes(request)) this.queued.push(request);
    }
  }

  #note(request: QueuedRequest, what: DispatchedBy | DropCode): void {
    this.outcomes.push({ request, what, atMs: this.nowMs });
    this.queued = this.queued.filter((one) => one !== request);
  }
}

/** Whether an outcome is a dispatch. */
export function isDispatch(what: DispatchedBy | DropCode): what is DispatchedBy {
  return ['bypass', 'queue', 'floor', 'promoted'].includes(what);
}

/** The band in whose stock an outcome counts. */
export function stockBandOf({ request, what }: Outcome): Band {
  return what === 'promoted' ? BAND.standard : request.band;
}
