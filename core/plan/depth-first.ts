import { NO_BLOCK, type ChainList } from './chain-list';
import { GroupTable } from './group-table';
import { RUN_MARK } from './runs';

/** Lines of one prefix hash, as places `[from, to)` of an order. */
interface Segment {
  readonly from: number;
  readonly to: number;
  /** Blocks that are known to be equal for all of them. */
  readonly depth: number;
}

/** The order and the runs that {@link DepthFirstOrder} works on, by place. */
export interface PlacedLines {
  /** Entry numbers; those of one segment are in input order. */
  readonly order: Uint32Array;
  /** One of {@link RUN_MARK} for each place. */
  readonly marks: Uint8Array;
}

/**
 * Sorts lines depth first over the tree of their prefixes, whose branches and leaves keep the order in which
 * they first appear. A cache that holds the longest prompt then computes each prefix once, which no order can
 * better (Zheng and others, "SGLang", 2024, theorem 3.1). Lines that share nothing keep their order.
 *
 * A run is a stretch of neighbours whose deepest shared prefix is the same.
 */
export class DepthFirstOrder {
  readonly #lines: PlacedLines;
  readonly #chains: ChainList;
  /** Entry numbers and group numbers of the segment at work. */
  #moved = new Uint32Array(0);
  #groups = new Uint32Array(0);
  readonly #table = new GroupTable();
  readonly #open: Segment[] = [];

  constructor(lines: PlacedLines, chains: ChainList) {
    this.#lines = lines;
    this.#chains = chains;
  }

  /** Sorts places `[from, to)`, whose lines have the same prefix hash, and marks their runs. */
  sort(from: number, to: number, isPrompted: boolean): void {
    this.#open.push({ from, to, depth: 0 });
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop()) {
      const depth = next.to - next.from > 1 ? this.#sharedDepth(next) : next.depth;
      const isShared = next.to - next.from > 1 && (isPrompted || depth > 0);
      this.#split({ ...next, depth }, isShared ? RUN_MARK.shared : RUN_MARK.single);
    }
  }

  /** How many blocks all lines of a segment share. */
  #sharedDepth({ from, to, depth }: Segment): number {
    const { order } = this.#lines;
    const first = order[from] ?? 0;
    let shared = this.#chains.lengthOf(first);
    for (let place = from + 1; place < to && shared > depth; place++) {
      shared = this.#sharedBlocks(first, order[place] ?? 0, { least: depth, most: shared });
    }
    return shared;
  }

  /** Blocks that two lines share, by bisection: equal hashes mean that all blocks before are equal. */
  #sharedBlocks(a: number, b: number, bounds: { least: number; most: number }): number {
    const chains = this.#chains;
    let { least } = bounds;
    let most = Math.min(bounds.most, chains.lengthOf(b));
    // Most lines of a segment share all of `most`.
    let middle = most;
    while (least < most) {
      if (chains.blockOf(a, middle - 1) === chains.blockOf(b, middle - 1)) least = middle;
      else most = middle - 1;
      middle = (least + most + 1) >> 1;
    }
    return least;
  }

  /** Groups a segment by the first block that its lines do not share; marks the lines without a group. */
  #split(segment: Segment, mark: number): void {
    const { from, to } = segment;
    const sizes = this.#countGroups(segment);
    if (sizes.length === to - from) {
      this.#lines.marks[from] = mark;
      return;
    }
    this.#gather(segment, sizes);
    let place = from;
    let isAlone = false;
    for (const size of sizes) {
      if (size > 1) {
        this.#open.push({ from: place, to: place + size, depth: segment.depth + 1 });
      } else if (!isAlone) {
        this.#lines.marks[place] = mark;
      }
      isAlone = size === 1;
      place += size;
    }
  }

  /** Numbers the groups in the order of first appearance. Returns their sizes. */
  #countGroups({ from, to, depth }: Segment): number[] {
    const { order } = this.#lines;
    this.#reserve(to - from);
    this.#table.reset(to - from);
    const sizes: number[] = [];
    for (let place = from; place < to; place++) {
      const block = this.#chains.blockAt(order[place] ?? 0, depth);
      // A line that ends here shares no further block, so it is a group of its own.
      const group = block === NO_BLOCK ? sizes.length : this.#table.numberOf(block, sizes.length);
      this.#groups[place - from] = group;
      if (group === sizes.length) sizes.push(1);
      else sizes[group] = (sizes[group] ?? 0) + 1;
    }
    return sizes;
  }

  /** Moves the lines of each group together. */
  #gather({ from, to }: Segment, sizes: readonly number[]): void {
    const { order } = this.#lines;
    const places = new Uint32Array(sizes.length);
    for (let group = 1; group < sizes.length; group++) {
      places[group] = (places[group - 1] ?? 0) + (sizes[group - 1] ?? 0);
    }
    this.#moved.set(order.subarray(from, to));
    for (let i = 0; i < to - from; i++) {
      const group = this.#groups[i] ?? 0;
      const place = places[group] ?? 0;
      places[group] = place + 1;
      order[from + place] = this.#moved[i] ?? 0;
    }
  }

  #reserve(lines: number): void {
    if (this.#groups.length >= lines) return;
    this.#moved = new Uint32Array(lines);
    this.#groups = new Uint32Array(lines);
  }
}
