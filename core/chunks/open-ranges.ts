import type { Range } from '../range';

/** Plan positions `[from, to)` of one model that lack an answer. */
export interface OpenRange extends Range {
  /**
   * Set after a chunk of the range has failed. For a range of one line it counts how often the line
   * failed when it was sent exclusively.
   */
  readonly failures?: number;
}

/**
 * The plan positions of one model that lack an answer, as disjoint half-open ranges in order. Chunks take
 * positions from the front, and give unanswered ones back to their place in the order.
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

  /** Takes up to `size` positions from the front. A range that has failed is taken whole. */
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
   * Puts back a range whose chunk failed. It is halved, so that a line that kills its worker is isolated
   * in a few steps. A single line is counted instead (docs/design/execution.md#poison-lines).
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

  /** The open positions of `range`, in order. They stay open. */
  within({ from, to }: Range): Range[] {
    return this.#ranges
      .map((open) => ({ from: Math.max(from, open.from), to: Math.min(to, open.to) }))
      .filter((one) => one.from < one.to);
  }

  /** Takes the open positions of `range`, which need not all be open. Parts of failed ranges keep their failures. */
  remove({ from, to }: Range): void {
    const kept = this.#ranges.flatMap((open) => [
      { ...open, to: Math.min(open.to, Math.max(from, open.from)) },
      { ...open, from: Math.max(open.from, Math.min(to, open.to)) },
    ]);
    const rest = kept.filter((one) => one.from < one.to);
    this.#ranges.splice(0, this.#ranges.length, ...rest);
  }

  /** Takes every open range. */
  takeAll(): OpenRange[] {
    return this.#ranges.splice(0, this.#ranges.length);
  }

  /** Every open range, for the next run of the workflow. */
  toArray(): OpenRange[] {
    return [...this.#ranges];
  }

  /** Joins adjacent ranges, so that they do not fragment. Ranges that failed stay separate. */
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
