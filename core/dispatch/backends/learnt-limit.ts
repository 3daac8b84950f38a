import { STEP, ThroughputCurve } from './throughput-curve';

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
  readonly sent: SentMark;
  /** Tokens that a success generated; of one that generates none, those of its input. */
  readonly work: number;
  /** `Retry-After`, ms; 0 for none. */
  readonly pauseMs: number;
  readonly nowMs: number;
}

/** The state of a limit when a request was sent. */
export interface SentMark {
  readonly epoch: number;
  readonly atMs: number;
  /** Integral of the requests in flight over time, ms. */
  readonly area: number;
}

/** After slow start, requests above `sheddable` may have this many times the limit in flight. */
const UNHELD = 1.25;
/** A cut multiplies the limit by this. */
const CUT = 0.7;
/** Slow start goes on while more than this share of the limit was tried, and paid. */
const TRIED = 0.75;
/** How far slow start goes beyond the best load, without users and beside them. */
const GROWTH = { alone: 2, beside: 1.3 };
/** A backend that got a request above `sheddable` within this time has users; the same for batches. */
const PRESENT_MS = 10_000;
/** How far the neighbours of the best load are away that it is compared with. */
const NEXT = { least: 1.05, most: 1.3 };
/** A longer `Retry-After` pauses a backend for only this long: its requests can go to other backends. */
const MAX_PAUSE_MS = 10_000;
/**
 * Batches use only a part of the limit, and users may exceed it. If a load does not occur within this time, the limit
 * goes as far beyond it.
 */
const OUT_OF_REACH_MS = 5_000;
/** Beside batches, the limit stays this long at the best load after its neighbours were measured. */
const REST_MS = 60_000;
/** How often the limit is decided. */
const INTERVAL_MS = 500;

/**
 * How many requests of all bands one backend may have in flight, learnt from its replies
 * (docs/design/flow-control.md#learnt-limits).
 *
 * A queue in front of a backend needs to know how much the backend can use. Too low a limit leaves it idle.
 * Too high a limit moves the queue into the backend, where no order and no fairness exist. Refusals alone
 * do not show the right limit, because many model servers accept any number of requests and become slow. So
 * growth must pay: {@link ThroughputCurve} shows from which load on more does not bring more work.
 *
 * | event                                         | the limit                                          |
 * |-----------------------------------------------|----------------------------------------------------|
 * | slow start: more load paid up to now          | grows to 2 × the best load, 1.3 × beside users     |
 * | more load does not pay                        | is the best load; ends slow start                  |
 * | streams show a queue in the engines           | is the best load; ends slow start                  |
 * | a load above or below the best is not known   | is that load, until it is; then rests for 60 s     |
 * | success                                       | grows by at most 1                                 |
 * | overload, sent after the last cut             | × 0.7; ends slow start                             |
 * | overload with `Retry-After`                   | as before; the backend pauses for it, at most 10 s |
 *
 * The limit holds batches back. Requests above `sheddable` may exceed it by a quarter, in slow start without a
 * bound: an estimate must not make users wait, and their load shows what the backend can do.
 */
export class LearntLimit {
  readonly #options: LearntLimitOptions;
  readonly #curve = new ThroughputCurve();
  #limit: number;
  /** The limit grows up to here, by 1 with each success. */
  #target: number;
  #inFlight = 0;
  #area = 0;
  #areaMs = 0;
  #isSlowStart = true;
  #cuts = 0;
  #decidedMs = -Infinity;
  /** The best load, and since when a neighbour of it is to be measured. */
  #best = 1;
  #missingMs = 0;
  /** Until then no neighbour is measured. */
  #restUntilMs = 0;
  /** When the last request above `sheddable` was sent. */
  #userMs = -Infinity;
  /** When the last sheddable request was sent. */
  #lineMs = -Infinity;
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
    this.#target = initial;
  }

  get limit(): number {
    return this.#limit;
  }

  /** How many requests above `sheddable` it lets in flight: more than its limit, which is an estimate. */
  get mostInFlight(): number {
    const { max } = this.#options;
    return this.#isSlowStart ? max : Math.min(Math.ceil(UNHELD * this.#limit), max);
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

  /** A request is sent. Returns what to pass to {@link end}. */
  send(nowMs: number, { isSheddable = true } = {}): SentMark {
    this.#advance(nowMs);
    if (isSheddable) this.#lineMs = nowMs;
    else this.#userMs = nowMs;
    this.#inFlight++;
    return { epoch: this.#cuts, atMs: nowMs, area: this.#area };
  }

  /** An exchange is over. Call it exactly once for each {@link send}. */
  end({ signal, sent, work, pauseMs, nowMs }: ExchangeEnd): void {
    this.#advance(nowMs);
    this.#inFlight--;
    if (signal === 'success') this.#succeed(sent, work, nowMs);
    if (signal !== 'overload') return;
    if (sent.epoch === this.#cuts) this.#cut();
    if (pauseMs <= 0) return;
    const untilMs = nowMs + Math.min(pauseMs, MAX_PAUSE_MS);
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs);
  }

  /**
   * Users wait in a queue of the engines, beside batches. Ends slow start if it has gone beyond the best load that is
   * known: the loads between the two will show that they do not pay, but only when many answers have ended.
   */
  onEngineQueue(nowMs: number): void {
    if (!this.#isSlowStart) return;
    const best = this.#curve.best(nowMs);
    if (best === null || best >= this.#limit) return;
    this.#isSlowStart = false;
    this.#aimAt(best);
  }

  #advance(nowMs: number): void {
    this.#area += this.#inFlight * Math.max(0, nowMs - this.#areaMs);
    this.#areaMs = Math.max(this.#areaMs, nowMs);
  }

  #succeed({ atMs, area }: SentMark, work: number, nowMs: number): void {
    const tookMs = nowMs - atMs;
    if (tookMs > 0 && work > 0) {
      this.#curve.add({ load: (this.#area - area) / tookMs, tookMs, work, nowMs });
    }
    if (this.#limit < this.#target) this.#limit++;
    if (nowMs - this.#decidedMs < INTERVAL_MS) return;
    this.#decidedMs = nowMs;
    this.#decide(nowMs);
  }

  #decide(nowMs: number): void {
    const best = this.#curve.best(nowMs);
    const top = this.#curve.top(nowMs);
    if (best === null || top === null) return;
    if (this.#isSlowStart)
      this.#isSlowStart = best >= top / STEP && this.#limit < this.#options.max;
    if (this.#isSlowStart) {
      if (best >= TRIED * this.#limit) this.#aimAt(this.#growth(nowMs) * best);
      return;
    }
    this.#onBest(best, nowMs);
    this.#aimAt(this.#toBeMeasured(best, nowMs) ?? this.#rest(best, nowMs));
  }

  #growth(nowMs: number): number {
    return nowMs - this.#userMs < PRESENT_MS ? GROWTH.beside : GROWTH.alone;
  }

  /** A load that pays more is compared with its neighbours at once: the limit may be far from the right one. */
  #onBest(best: number, nowMs: number): void {
    if (Math.abs(Math.log(best / this.#best)) <= Math.log(NEXT.least)) return;
    this.#restUntilMs = 0;
    this.#best = best;
    this.#missingMs = nowMs;
  }

  #rest(best: number, nowMs: number): number {
    this.#missingMs = nowMs;
    if (nowMs >= this.#restUntilMs) this.#restUntilMs = nowMs + REST_MS;
    return best;
  }

  /** The limit with which the best load gets neighbours to be compared with; null if it has them, or rests. */
  #toBeMeasured(best: number, nowMs: number): number | null {
    // Without batches, a higher limit cannot do harm.
    const hasBatches = nowMs - this.#lineMs < PRESENT_MS;
    if (hasBatches && nowMs < this.#restUntilMs) return null;
    const { least, most } = NEXT;
    const missingMs = nowMs - this.#missingMs;
    const isOutOfReach = missingMs >= OUT_OF_REACH_MS;
    const above = { from: best * least, to: best * most };
    const isAboveKnown = above.from > this.#options.max || this.#curve.isKnown(above, nowMs);
    // Without enough requests, no limit brings that load.
    if (!isAboveKnown && missingMs < 2 * OUT_OF_REACH_MS) {
      return best * STEP * (isOutOfReach ? STEP : 1);
    }
    const below = { from: best / most, to: best / least };
    if (below.to < this.#options.min || this.#curve.isKnown(below, nowMs)) return null;
    return best / STEP / (isOutOfReach ? UNHELD : 1);
  }

  #aimAt(limit: number): void {
    this.#target = this.#clamped(Math.round(limit));
    this.#limit = Math.min(this.#limit, this.#target);
  }

  #cut(): void {
    this.#cuts++;
    this.#limit = this.#clamped(Math.floor(this.#limit * CUT));
    this.#target = this.#limit;
    this.#isSlowStart = false;
    this.#curve.forgetAbove(this.#limit);
  }

  #clamped(limit: number): number {
    return Math.min(this.#options.max, Math.max(this.#options.min, limit));
  }
}
