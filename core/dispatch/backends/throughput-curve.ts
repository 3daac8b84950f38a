/** One success of a backend. */
export interface MeasuredSuccess {
  /** Mean number of requests in flight between its dispatch and its end. */
  readonly load: number;
  readonly tookMs: number;
  /** Tokens. */
  readonly work: number;
  readonly nowMs: number;
}

/** What was measured at loads that differ by less than one step. */
interface Bucket {
  /** Successes; all sums fade together. */
  weight: number;
  /** Work × load. */
  work: number;
  timeMs: number;
  /** Load × time. */
  area: number;
  atMs: number;
}

/** The factor between neighbouring loads. */
export const STEP = 1.1;
/** A step must bring 2 % more work per second. */
const PAYS = Math.log(1.02) / Math.log(STEP);
/** Rates that differ by less count as equal: then the lower load is better. */
const EQUAL = 0.01;
/** Fewer successes do not show how fast a backend is at a load. */
const ENOUGH = 12;
/** More successes do not count, so that a change shows within so many. */
const MOST = 128;
/** Successes fade with this time constant, ms. Within about two minutes a load has to be measured again. */
const FADE_MS = 60_000;

/**
 * How much work a backend does per second, by the number of requests that it has in flight
 * (docs/design/flow-control.md#learnt-limits).
 *
 * Counting answers per second at one level of load is noisy: arrivals and lengths are random, and the level would
 * have to be held all the time. So each request is a measurement of its own. Its tokens, divided by the time that
 * they took, are the speed of one request, and with n requests in flight the backend is n times as fast. Any load
 * that occurs adds to the curve, that of users too.
 */
export class ThroughputCurve {
  readonly #buckets: (Bucket | undefined)[] = [];

  add({ load, tookMs, work, nowMs }: MeasuredSuccess): void {
    const bucket = (this.#buckets[indexOf(load)] ??= {
      ...{ weight: 0, work: 0, timeMs: 0, area: 0, atMs: nowMs },
    });
    const kept = Math.min(1, MOST / (bucket.weight + 1)) * fading(bucket, nowMs);
    bucket.weight = bucket.weight * kept + 1;
    bucket.work = bucket.work * kept + work * load;
    bucket.timeMs = bucket.timeMs * kept + tookMs;
    bucket.area = bucket.area * kept + load * tookMs;
    bucket.atMs = nowMs;
  }

  /** Whether a load between the two is known. */
  isKnown({ from, to }: { readonly from: number; readonly to: number }, nowMs: number): boolean {
    return this.#known(nowMs).some(({ load }) => load >= from && load <= to);
  }

  /** The load from which more does not pay, among those that are known; null if none is. */
  best(nowMs: number): number | null {
    const known = this.#known(nowMs);
    const most = Math.max(...known.map(({ gain }) => gain));
    return known.find(({ gain }) => gain >= most - EQUAL)?.load ?? null;
  }

  /** The largest load that is known; null if none is. */
  top(nowMs: number): number | null {
    return this.#known(nowMs).at(-1)?.load ?? null;
  }

  /** Forgets what was measured above a load. */
  forgetAbove(load: number): void {
    this.#buckets.length = Math.min(this.#buckets.length, indexOf(load) + 1);
  }

  /** By load. `gain` grows from one load to the next as long as the step pays. */
  #known(nowMs: number): { readonly load: number; readonly gain: number }[] {
    const found: { load: number; gain: number }[] = [];
    for (let i = 0; i < this.#buckets.length; i++) {
      const own = this.#buckets[i];
      if (own === undefined || own.weight * fading(own, nowMs) < ENOUGH) continue;
      const { work, timeMs, area } = this.#pooled(i, nowMs);
      const gain = Math.log(work / timeMs) - PAYS * Math.log(area / timeMs);
      found.push({ load: own.area / own.timeMs, gain });
    }
    return found;
  }

  /** A bucket and its neighbours: three times as many successes for a tenth more blur. */
  #pooled(index: number, nowMs: number): Pick<Bucket, 'work' | 'timeMs' | 'area'> {
    const sum = { work: 0, timeMs: 0, area: 0 };
    for (let i = Math.max(0, index - 1); i <= index + 1; i++) {
      const bucket = this.#buckets[i];
      if (bucket === undefined) continue;
      const kept = fading(bucket, nowMs);
      sum.work += bucket.work * kept;
      sum.timeMs += bucket.timeMs * kept;
      sum.area += bucket.area * kept;
    }
    return sum;
  }
}

function indexOf(load: number): number {
  return Math.max(0, Math.round(Math.log(Math.max(1, load)) / Math.log(STEP)));
}

function fading({ atMs }: Bucket, nowMs: number): number {
  return Math.exp(-Math.max(0, nowMs - atMs) / FADE_MS);
}
