/**
 * Measures fairness: for each pair of competitors, how far their service divided by their weights drifts
 * apart while both compete without a break. Any interval inside such a time is covered, because the spread
 * is the largest difference between two moments.
 */
export class PairSpread {
  readonly #weights: readonly number[];
  readonly #pairs = new Map<string, { now: number; least: number; most: number }>();

  constructor(weights: readonly number[]) {
    this.#weights = weights;
  }

  /** Call it whenever competitors may have begun or stopped to compete. */
  setCompeting(competes: (i: number) => boolean): void {
    for (const [a, b] of this.#all()) {
      const key = `${a},${b}`;
      if (!competes(a) || !competes(b)) this.#pairs.delete(key);
      else if (!this.#pairs.has(key)) this.#pairs.set(key, { now: 0, least: 0, most: 0 });
    }
  }

  serve(i: number, cost: number): void {
    for (const [a, b] of this.#all()) {
      const pair = this.#pairs.get(`${a},${b}`);
      if (pair === undefined || (a !== i && b !== i)) continue;
      pair.now += (a === i ? 1 : -1) * (cost / this.#weights[i]!);
      pair.least = Math.min(pair.least, pair.now);
      pair.most = Math.max(pair.most, pair.now);
    }
  }

  /** Fails if a pair drifts further apart than the sum of what `slack` allows its members. */
  check(slack: (i: number) => number): void {
    for (const [a, b] of this.#all()) {
      const pair = this.#pairs.get(`${a},${b}`);
      if (pair === undefined) continue;
      const [spread, most] = [pair.most - pair.least, (slack(a) + slack(b)) * (1 + 1e-9)];
      // `expect` is slow, so it is called only to fail.
      if (spread > most) expect(spread).toBeLessThanOrEqual(most);
    }
  }

  *#all(): Generator<[number, number]> {
    for (let a = 0; a < this.#weights.length; a++) {
      for (let b = a + 1; b < this.#weights.length; b++) yield [a, b];
    }
  }
}
