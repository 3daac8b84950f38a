import type { Range } from '../range';

/** Plan positions without an answer. */
export interface OpenRange extends Range {
  /** Set where a chunk of it failed; of a single line: how often it failed alone. */
  readonly failures?: number;
}

/**
 * Plan positions of one model that still lack an answer, as disjoint half-open ranges in order. What
 * a chunk leaves over goes back to its place: the plan is worked through from the front.
 */
export class OpenRanges {
  readonly #ranges: OpenRange[];

  constructor(ranges: readonly OpenRange[]) {
    this.#ranges = ranges.filter((range) => range.from < range.to).sort(byFrom);
  }

  /** Number of positions left. */
  get remaining(): number {
    return this.#ranges.reduce((sum, range) => sum + range.to - range.from, 0);
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0;
  }

  /** Up to `size` positions from the front; a range that failed before is taken whole. */
  take(size: number): OpenRange | null {
    const first = this.#ranges.shift();
    if (first === undefined) return null;
    if (first.failures !== undefined || first.to - first.from <= size) return first;
    this.#ranges.unshift({ from: first.from + size, to: first.to });
    return { from: first.from, to: first.from + size };
  }

  /** Puts back what was not answered. */
  giveBack(range: OpenRange): void {
    if (range.from >= range.to) return;
    this.#ranges.push(range);
    this.#ranges.sort(byFrom);
    this.#coalesce();
  }

  /**
   * Puts back a range whose chunk failed: halved, so that a line which kills its worker is found in a
   * few steps; a single line runs alone from then on, and is counted (execution §3, poison).
   */
  giveBackFailed(range: OpenRange): void {
    const length = range.to - range.from;
    if (length <= 1) {
      const failures = range.failures === undefined ? 0 : range.failures + 1;
      this.giveBack({ ...range, failures });
      return;
    }
    const middle = range.from + Math.floor(length / 2);
    this.giveBack({ from: range.from, to: middle, failures: 0 });
    this.giveBack({ from: middle, to: range.to, failures: 0 });
  }

  /** All that is open, for a hand-over to the next run. */
  toArray(): OpenRange[] {
    return [...this.#ranges];
  }

  /** Joins neighbours, so that leftovers do not crumble; suspects stay as they are. */
  #coalesce(): void {
    for (let i = this.#ranges.length - 1; i > 0; i--) {
      const left = this.#ranges[i - 1];
      const right = this.#ranges[i];
      if (left === undefined || right === undefined || left.to !== right.from) continue;
      if (left.failures !== undefined || right.failures !== undefined) continue;
      this.#ranges.splice(i - 1, 2, { from: left.from, to: right.to });
    }
  }
}

function byFrom(a: OpenRange, b: OpenRange): number {
  return a.from - b.from;
}
