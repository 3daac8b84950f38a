import type { Range } from '../range';

/** A range of a model's plan that is submitted together. Lines in it that have an answer are skipped. */
export interface Part extends Range {
  /** Lines without an answer in the range. */
  readonly lines: number;
}

/** Bounds of one part. */
export interface PartLimits {
  /** Most lines of one job. */
  readonly maxLines: number;
  /** Most bytes of one job. */
  readonly maxBytes: number;
  /** Bytes of all open lines, or an estimate: staging ends a part early if it grows too large. */
  readonly totalBytes: number;
}

/**
 * Cuts the open ranges of a plan into as few parts as the limits allow. Their numbers of lines differ by
 * at most one, so that no rest falls below the provider's minimum (docs/design/provider-jobs.md#parts).
 * Each open line is in exactly one part, and parts do not overlap.
 *
 * @param open disjoint ranges in order
 */
export function cutIntoParts(open: readonly Range[], limits: PartLimits): Part[] {
  const total = open.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
  if (total === 0) return [];
  const count = Math.min(total, partCount(total, limits));
  const cursor = new OpenLines(open);
  return Array.from({ length: count }, (_, i) => {
    const lines = Math.floor(((i + 1) * total) / count) - Math.floor((i * total) / count);
    return { ...cursor.take(lines), lines };
  });
}

function partCount(lines: number, { maxLines, maxBytes, totalBytes }: PartLimits): number {
  return Math.max(1, Math.ceil(lines / maxLines), Math.ceil(totalBytes / maxBytes));
}

/** Walks over open lines in the order of the plan. */
class OpenLines {
  readonly #ranges: readonly Range[];
  #index = 0;
  #rest: Range = { from: 0, to: 0 };

  constructor(open: readonly Range[]) {
    this.#ranges = open;
  }

  /** The smallest range that holds the next `lines` open lines. */
  take(lines: number): Range {
    const from = this.#next();
    let to = from;
    for (let left = lines; left > 0;) {
      const first = this.#next();
      const taken = Math.min(left, this.#rest.to - first);
      to = first + taken;
      this.#rest = { from: to, to: this.#rest.to };
      left -= taken;
    }
    return { from, to };
  }

  /** The next open position. */
  #next(): number {
    while (this.#rest.from >= this.#rest.to) {
      const range = this.#ranges[this.#index++];
      if (range === undefined) throw new RangeError('no open line is left');
      this.#rest = range;
    }
    return this.#rest.from;
  }
}
