/** A level of load, and what the backend achieved there. */
interface Level {
  readonly limit: number;
  /** Mean number of requests in flight. */
  readonly load: number;
  readonly tokensPerMs: number;
}

/** One success while the backend was busy. */
interface BusySuccess {
  readonly limit: number;
  /** Requests in flight, this one included. */
  readonly inFlight: number;
  readonly isSlowStart: boolean;
  readonly tokens: number;
  readonly nowMs: number;
}

/** Load that grows by 10 % must bring 2 % more tokens per second; other steps in proportion. */
const PAYS = Math.log(1.02) / Math.log(1.1);
/**
 * The factor to the next level, and the successes that make up a measurement, at least. Lengths of answers
 * differ so much that fewer would often miss the gain of a small step.
 */
const SLOW_START = { factor: 2, minMeasured: 16 };
const LATER = { factor: 1.1, minMeasured: 64 };

/**
 * Whether it pays to raise the limit of a backend. It measures tokens per second at one level of load, lets
 * the limit grow to the next level, measures again and compares
 * (docs/design/flow-control.md#learnt-limits). While it measures, the limit must not grow: a rate that is
 * measured while the load changes belongs to neither level.
 */
export class LimitProbe {
  readonly #max: number;
  #target: number;
  #before: Level | null = null;
  #isMeasuring = true;
  #startMs: number | null = null;
  #tokens = 0;
  #load = 0;
  #count = 0;
  /** Successes of the first round. */
  #skipped = 0;

  /** The first level is `limit`, which is measured before anything grows. No level exceeds `max`. */
  constructor({ limit, max }: { readonly limit: number; readonly max: number }) {
    this.#target = limit;
    this.#max = max;
  }

  /** The limit may grow up to this level. */
  get target(): number {
    return this.#target;
  }

  get isMeasuring(): boolean {
    return this.#isMeasuring;
  }

  /** The limit grew. Measuring begins when it reaches the target. */
  onRaised(limit: number): void {
    if (limit < this.#target) return;
    this.#isMeasuring = true;
    this.restart();
  }

  /** Begins the measurement anew, because the load was too low to show anything. */
  restart(): void {
    this.#startMs = null;
    this.#tokens = 0;
    this.#load = 0;
    this.#count = 0;
  }

  /** Forgets all levels, because the limit was lowered. The next level is measured without a comparison. */
  forget(): void {
    this.#before = null;
    this.#isMeasuring = true;
    this.restart();
  }

  /** Counts a success. Returns the limit to go back to if this level does not pay, else null. */
  add(success: BusySuccess): number | null {
    const { limit, isSlowStart, nowMs } = success;
    // The first round of answers belongs to requests that were sent at the level before.
    if (this.#count === 0) this.#skipped = Math.max(limit, success.inFlight);
    if (++this.#count <= this.#skipped) {
      this.#startMs = nowMs;
      return null;
    }
    this.#tokens += success.tokens;
    this.#load += success.inFlight;
    const measured = this.#count - this.#skipped;
    const step = isSlowStart ? SLOW_START : LATER;
    if (measured < Math.max(limit, step.minMeasured)) return null;
    const tookMs = Math.max(1, nowMs - (this.#startMs ?? nowMs));
    const now = { limit, load: this.#load / measured, tokensPerMs: this.#tokens / tookMs };
    if (this.#before !== null && !pays(this.#before, now)) {
      return retreat(this.#before, isSlowStart);
    }
    this.#before = now;
    this.#isMeasuring = false;
    this.#target = Math.min(this.#max, Math.ceil(limit * step.factor));
    // Nothing can grow, so go one step back and compare again: the backend may be able to do less by then.
    if (limit === this.#max) return retreat(now, false);
    this.restart();
    return null;
  }
}

/**
 * In slow start, the load of the level before, which may exceed its limit. Later, one step below the level
 * before. Rates are noisy, so beyond the knee every other step seems to pay. If a step that does not pay only
 * took itself back, the limit could never fall.
 */
function retreat({ limit, load }: Level, isSlowStart: boolean): number {
  return isSlowStart ? Math.round(load) : Math.floor(limit / LATER.factor);
}

function pays(before: Level, now: Level): boolean {
  return now.tokensPerMs >= before.tokensPerMs * (now.load / before.load) ** PAYS;
}
