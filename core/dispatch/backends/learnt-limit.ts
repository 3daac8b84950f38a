import { LimitProbe } from './limit-probe';

/** Bounds of a backend's limit, in requests (docs/design/flow-control.md#learnt-limits). */
export interface LearntLimitOptions {
  /** The limit before anything is known. */
  readonly initial: number;
  readonly min: number;
  readonly max: number;
}

const DEFAULTS: LearntLimitOptions = { initial: 8, min: 1, max: 256 };

/**
 * What the end of an exchange shows about its backend. `success`: a 2xx. `overload`: 429, 503, 529, no
 * connection in time, or a timeout. `none`: everything else, also a refused connection; 500 and 502 are the business
 * of the circuit breaker.
 */
export type BackendSignal = 'success' | 'overload' | 'none';

/** The end of one exchange. */
export interface ExchangeEnd {
  readonly signal: BackendSignal;
  /** What {@link LearntLimit.send} returned. */
  readonly epoch: number;
  /** Input and output tokens of a success. */
  readonly tokens: number;
  /** `Retry-After`, ms; 0 for none. */
  readonly pauseMs: number;
  readonly nowMs: number;
}

/** In slow start, requests above `sheddable` may have this many times the limit in flight. */
const UNHELD = 2;
/** A cut multiplies the limit by this. */
const CUT = 0.7;
/** A success counts if at least this share of the limit is in flight: else it shows nothing about the limit. */
const BUSY_SHARE = 0.8;
/** A longer `Retry-After` pauses a backend for only this long: its requests can go to other backends. */
const MAX_PAUSE_MS = 10_000;
/** How long a limit that was too high rests, before the next attempt to raise it. */
const REST_MS = 30_000;

/**
 * How many requests of all bands one backend may have in flight, learnt from its replies
 * (docs/design/flow-control.md#learnt-limits).
 *
 * A queue in front of a backend needs to know how much the backend can use. Too low a limit leaves it idle.
 * Too high a limit moves the queue into the backend, where no order and no fairness exist. Refusals alone
 * do not show the right limit, because many model servers accept any number of requests and become slow. So
 * growth must pay: {@link LimitProbe} compares tokens per second before and after.
 *
 * | event                                          | effect                                           |
 * |------------------------------------------------|--------------------------------------------------|
 * | success, busy, slow start                      | grows by 1                                       |
 * | `limit` successes, busy, after slow start      | grows by 1                                       |
 * | growth reached the next level                  | holds until the level is measured                |
 * | the level does not pay                         | below the level before; ends slow start; rests   |
 * | overload, sent after the last cut              | × 0.7; ends slow start                           |
 * | overload with `Retry-After`                    | pauses for it, at most 10 s                      |
 *
 * In slow start the limit is a guess, so requests above `sheddable` may exceed it, up to twice: their load
 * raises it. Without a bound, a flood of users would be measured at every level as the same load, and no level
 * would pay.
 */
export class LearntLimit {
  readonly #options: LearntLimitOptions;
  readonly #probe: LimitProbe;
  #limit: number;
  #inFlight = 0;
  #isSlowStart = true;
  #successes = 0;
  #cuts = 0;
  #restsUntilMs = 0;
  #pausedUntilMs = 0;

  /**
   * @param options 8, 1 and 256 unless given
   * @throws RangeError unless 1 ≤ min ≤ initial ≤ max
   */
  constructor(options: Partial<LearntLimitOptions> = {}) {
    const { initial, min, max } = { ...DEFAULTS, ...options };
    if (!(min >= 1 && min <= initial && initial <= max)) {
      throw new RangeError(`need 1 ≤ min ≤ initial ≤ max, got ${min}, ${initial}, ${max}`);
    }
    this.#options = { initial, min, max };
    this.#limit = initial;
    this.#probe = new LimitProbe({ limit: initial, max });
  }

  get limit(): number {
    return this.#limit;
  }

  /** How many requests above `sheddable` it lets in flight: in slow start more than its limit. */
  get mostInFlight(): number {
    return this.#isSlowStart ? Math.min(UNHELD * this.#limit, this.#options.max) : this.#limit;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get isSlowStart(): boolean {
    return this.#isSlowStart;
  }

  /** Nothing may be sent before this time, in the clock of `nowMs`; 0 before the first pause. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** Whether a request may be sent now. */
  hasRoom({
    isSheddable,
    nowMs,
  }: {
    readonly isSheddable: boolean;
    readonly nowMs: number;
  }): boolean {
    if (nowMs < this.#pausedUntilMs) return false;
    return this.#inFlight < (isSheddable ? this.#limit : this.mostInFlight);
  }

  /** A request is sent. Returns the epoch to pass to {@link end}. */
  send(): number {
    this.#inFlight++;
    // Load that slow start did not hold back raises the limit, but not beyond what is to be measured next.
    if (this.#isSlowStart && this.#inFlight > this.#limit) this.#raise();
    return this.#cuts;
  }

  /** An exchange is over. Call it exactly once for each {@link send}. */
  end({ signal, epoch, tokens, pauseMs, nowMs }: ExchangeEnd): void {
    const isBusy = this.#inFlight >= BUSY_SHARE * this.#limit;
    this.#inFlight--;
    if (signal === 'success') this.#succeed({ isBusy, tokens, nowMs });
    if (signal !== 'overload') return;
    if (epoch === this.#cuts) this.#cut();
    if (pauseMs <= 0) return;
    const untilMs = nowMs + Math.min(pauseMs, MAX_PAUSE_MS);
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs);
  }

  #succeed(success: { isBusy: boolean; tokens: number; nowMs: number }): void {
    if (success.nowMs < this.#restsUntilMs) return;
    if (!success.isBusy) return this.#probe.restart();
    if (this.#probe.isMeasuring) return this.#measure(success);
    const needed = this.#isSlowStart ? 1 : this.#limit;
    if (++this.#successes < needed) return;
    this.#successes = 0;
    this.#raise();
  }

  #measure({ tokens, nowMs }: { tokens: number; nowMs: number }): void {
    const level = {
      limit: this.#limit,
      inFlight: this.#inFlight + 1,
      isSlowStart: this.#isSlowStart,
    };
    const lower = this.#probe.add({ ...level, tokens, nowMs });
    if (lower === null) return;
    this.#limit = this.#clamped(lower);
    this.#probe.forget();
    this.#isSlowStart = false;
    this.#restsUntilMs = nowMs + REST_MS;
  }

  #raise(): void {
    if (this.#limit >= this.#probe.target) return;
    this.#limit = this.#clamped(this.#limit + 1);
    this.#probe.onRaised(this.#limit);
  }

  #cut(): void {
    this.#cuts++;
    this.#limit = this.#clamped(Math.floor(this.#limit * CUT));
    this.#isSlowStart = false;
    this.#successes = 0;
    this.#probe.forget();
  }

  #clamped(limit: number): number {
    return Math.min(this.#options.max, Math.max(this.#options.min, limit));
  }
}
