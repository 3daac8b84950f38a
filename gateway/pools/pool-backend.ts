import type {
  BackendSignal,
  LearntLimit,
  SentMark,
} from '../../core/dispatch/backends/learnt-limit';
import { TtfbWindow } from '../../core/dispatch/backends/ttfb-window';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import type { Breaker, BreakerFailureKind } from '../../core/dispatch/breaker';
import type { EngineLoad } from '../../inference/proxy/engine-load';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import type { ProxiedBackend } from '../../inference/proxy/proxied-backend';

/** What the probe of a backend knows. */
export interface ProbedBackend {
  readonly isReady: boolean;
  /** Why it is not ready; null if it is. */
  readonly reason: string | null;
  /** What the engine says of itself; null if that is not known. */
  readonly load: EngineLoad | null;
  /** A real request got a 2xx. */
  onAnswered(): void;
  /** The connection of a real request was refused. */
  onRefused(): void;
}

/** What a backend may be sent. `busy`: nothing of batches. */
export interface BackendCondition {
  readonly state: 'ready' | 'busy' | 'paused' | 'not_ready';
  readonly reason: string | null;
}

/** Above either, batches have to wait: the engine has a queue of its own, or will soon evict what it computed. */
const MOST_WAITING = 5;
const MOST_CACHE_USE = 0.8;

/** What a {@link PoolBackend} is made of. */
export interface PoolBackendParts {
  readonly proxied: ProxiedBackend;
  readonly probe: ProbedBackend;
  readonly limit: LearntLimit;
  readonly breaker: Breaker;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** An exchange that is about to begin. */
export interface SendingBegin {
  readonly requestId: string;
  readonly cost: number;
  readonly band: Band;
}

/** One exchange that has begun. */
export interface Sending {
  readonly cost: number;
  readonly requestId: string;
  readonly startedMs: number;
  readonly sent: SentMark;
  /** Whether it tests a backend that the circuit breaker has given up. */
  readonly isProbe: boolean;
}

/** How it ended. */
export interface SendingEnd {
  readonly end: ExchangeEnd;
  /** Tokens that it generated; without any, those of its input. */
  readonly work: number;
  /** `Retry-After` of the answer, ms; 0 for none. */
  readonly pauseMs: number;
}

/** One model server of a pool: whether it is ready, what it has in flight, and how much it can use. */
export class PoolBackend {
  readonly proxied: ProxiedBackend;
  readonly limit: LearntLimit;
  /** Times to first byte of streams above `sheddable`. */
  readonly ttfb = new TtfbWindow();
  readonly #probe: ProbedBackend;
  readonly #breaker: Breaker;
  readonly #now: () => number;
  #cost = 0;

  constructor({ proxied, probe, limit, breaker, now }: PoolBackendParts) {
    this.proxied = proxied;
    this.limit = limit;
    this.#probe = probe;
    this.#breaker = breaker;
    this.#now = now;
  }

  /** Its base URL, which no other backend of the pool has. */
  get id(): string {
    return this.proxied.url;
  }

  get inFlight(): number {
    return this.limit.inFlight;
  }

  /** Expected cost of what is in flight. */
  get cost(): number {
    return this.#cost;
  }

  /** What it may be sent, and why not everything; the reason is null if it is ready. */
  get condition(): BackendCondition {
    const nowMs = this.#now();
    if (!this.#probe.isReady) return { state: 'not_ready', reason: this.#probe.reason };
    if (nowMs < this.#breaker.retryAtMs) {
      return { state: 'not_ready', reason: 'the circuit breaker is open' };
    }
    if (nowMs < this.limit.pausedUntilMs) {
      return { state: 'paused', reason: 'it answered with Retry-After' };
    }
    if (!this.isBusy) return { state: 'ready', reason: null };
    const { waiting = 0, cacheUse = 0 } = this.#probe.load ?? {};
    const percent = Math.round(cacheUse * 100);
    return { state: 'busy', reason: `${waiting} requests wait in it, KV cache ${percent} %` };
  }

  /** Whether the engine says that it has no room for batches. */
  get isBusy(): boolean {
    const { load } = this.#probe;
    return load !== null && (load.waiting > MOST_WAITING || load.cacheUse > MOST_CACHE_USE);
  }

  get isReady(): boolean {
    const { retryAtMs } = this.#breaker;
    // A closed breaker needs no clock.
    return this.#probe.isReady && (retryAtMs === 0 || this.#now() >= retryAtMs);
  }

  /** A request is about to be sent. Call {@link end} exactly once. */
  begin({ requestId, cost, band }: SendingBegin): Sending {
    const startedMs = this.#now();
    this.#cost += cost;
    const isProbe = this.#breaker.admit(startedMs) === 'probe';
    const sent = this.limit.send(startedMs, { isSheddable: band === BAND.sheddable });
    return { cost, requestId, startedMs, sent, isProbe };
  }

  end(sending: Sending, { end, work, pauseMs }: SendingEnd): void {
    const nowMs = this.#now();
    this.limit.end({ signal: signalOf(end), sent: sending.sent, work, pauseMs, nowMs });
    // Sums of fractions do not return to 0 exactly.
    this.#cost = this.limit.inFlight === 0 ? 0 : this.#cost - sending.cost;
    this.#judge(sending, end, nowMs);
  }

  #judge({ requestId, startedMs, isProbe }: Sending, end: ExchangeEnd, nowMs: number): void {
    const { status } = end;
    const kind = failureOf(end);
    if (kind !== null) {
      this.#breaker.onFailure({ lineId: requestId, kind, nowMs, probe: isProbe });
    } else if (status !== null) this.#breaker.onSuccess(startedMs);
    else if (isProbe) this.#breaker.onProbeLost(nowMs);
    if (end.outcome === 'answered' && isSuccess(status)) this.#probe.onAnswered();
    if (end.isRefused) this.#probe.onRefused();
  }
}

const OVERLOAD_STATUSES = [429, 503, 529];
const FAILURE_STATUSES = [502, 503, 504] as const;

/** What an end shows about the limit (docs/design/flow-control.md#learnt-limits). */
function signalOf({ outcome, status, isRefused }: ExchangeEnd): BackendSignal {
  // Nothing listens there, which shows nothing about what the server could take.
  if (isRefused) return 'none';
  if (outcome === 'unreachable' || outcome === 'timeout') return 'overload';
  if (status !== null && OVERLOAD_STATUSES.includes(status)) return 'overload';
  return outcome === 'answered' && isSuccess(status) ? 'success' : 'none';
}

/** What an end shows about the server; null for a server that works, or for nothing. */
function failureOf({ outcome, status }: ExchangeEnd): BreakerFailureKind | null {
  if (outcome === 'unreachable') return 'connect';
  if (outcome === 'lost') return 'connection';
  if (outcome === 'timeout') return 504;
  return FAILURE_STATUSES.find((failure) => failure === status) ?? null;
}

function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300;
}
