import type { Band } from '../queue/band';

/** Dispatched cost fades with this time constant, ms. */
const FADE_MS = 30_000;
/** It fades in steps, because every dispatch asks, ms. */
const STEP_MS = 100;
/** Cost below this share of all cost is an error of rounding: costs fade each on their own. */
const ROUNDING = 1e-9;

/** What {@link FloorShares.isStarved} depends on. */
export interface StarvedInput {
  /** Whether the band has queued requests. */
  readonly isWaiting: boolean;
  /** `bands.floor`. */
  readonly floor: number;
}

/**
 * Decides when a lower band that waits gets its floor (docs/design/flow-control.md#floor).
 *
 * Dispatched cost fades, so recent cost counts most. A band that got much more than its floor before a burst of
 * higher bands waits through that burst, for about a minute. In a longer one it gets its floor of all further cost.
 */
export class FloorShares {
  readonly #costs = new Float64Array(3);
  /** What counts as dispatched although it was not, by band. */
  readonly #waived = new Float64Array(3);
  readonly #isWaiting: [boolean, boolean, boolean] = [false, false, false];
  #atMs = 0;

  /** Lets cost fade. Call it before the other methods. */
  advance(nowMs: number): void {
    if (nowMs - this.#atMs < STEP_MS) return;
    const kept = Math.exp((this.#atMs - nowMs) / FADE_MS);
    for (let band = 0; band < this.#costs.length; band++) {
      this.#costs[band] = this.#costOf(band) * kept;
      this.#waived[band] = this.#waivedOf(band) * kept;
    }
    this.#atMs = nowMs;
  }

  /** Something of a band was dispatched. */
  add(band: Band, cost: number): void {
    this.#costs[band] = this.#costOf(band) + cost;
  }

  /** Whether a band waits and got less than its floor, a share of all cost. */
  isStarved(band: Band, { isWaiting, floor }: StarvedInput): boolean {
    const all = this.#costOf(0) + this.#costOf(1) + this.#costOf(2);
    const owed = floor * all - this.#costOf(band);
    // What was dispatched before the band began to wait owes it nothing: it would get all that as one burst.
    if (isWaiting && !this.#isWaiting[band]) this.#waived[band] = Math.max(0, owed);
    this.#isWaiting[band] = isWaiting;
    return isWaiting && owed - this.#waivedOf(band) > ROUNDING * all;
  }

  #costOf(band: number): number {
    return this.#costs[band] ?? 0;
  }

  #waivedOf(band: number): number {
    return this.#waived[band] ?? 0;
  }
}
