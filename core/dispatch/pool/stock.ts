import type { Band } from '../queue/band';

/**
 * What is in flight in a pool: every dispatched request whose exchange with its backend is not over. It
 * changes at a dispatch and at an end, and at no other time.
 */
export class Stock {
  readonly #byBand: [number, number, number] = [0, 0, 0];
  #requests = 0;
  #cost = 0;

  get requests(): number {
    return this.#requests;
  }

  /** Cost as expected at the dispatch. */
  get cost(): number {
    return this.#cost;
  }

  inBand(band: Band): number {
    return this.#byBand[band];
  }

  add(band: Band, cost: number): void {
    this.#byBand[band]++;
    this.#requests++;
    this.#cost += cost;
  }

  remove(band: Band, cost: number): void {
    this.#byBand[band]--;
    this.#requests--;
    // Sums of fractions do not return to 0 exactly.
    this.#cost = this.#requests === 0 ? 0 : this.#cost - cost;
  }
}
