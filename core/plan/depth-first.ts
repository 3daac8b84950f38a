import type { ChainList } from './chain-list';
import { GroupTable } from './group-table';

/** Lines of one prefix hash, as places `[from, to)` of an order. */
interface Segment {
  readonly from: number;
  readonly to: number;
  /** Blocks that are known to be equal for all of them. */
  readonly depth: number;
}

/** What {@link DepthFirstOrder} works on, by place. */
export interface PlacedLines {
  /** Entry numbers; those of one segment are in input order. */
  readonly order: Uint32Array;
  /** Blocks that the line shares with the line before it. */
  readonly shared: Uint16Array;
}

/**
 * Sorts lines depth first over the tree of their prefixes, whose branches and leaves keep the order in which
 * they first appear. A cache that holds the longest prompt then computes each prefix once, which no order can
 * better (Zheng and others, "SGLang", 2024, theorem 3.1). Lines that share nothing keep their order.
 */
export class DepthFirstOrder {
  readonly #lines: PlacedLines;
  readonly #chains: ChainList;
  readonly #bounds: Uint32Array;
  /** Entry numbers and group numbers of the segment at work, and the sizes of its groups. */
  #moved = new Uint32Array(0);
  #groups = new Uint32Array(0);
  #sizes = new Uint32Array(0);
  readonly #table = new GroupTable();
  readonly #open: Segment[] = [];

  constructor(lines: PlacedLines, chains: ChainList) {
    this.#lines = lines;
    this.#chains = chains;
    this.#bounds = chains.bounds();
  }

  /** Sorts places `[from, to)`, whose lines have the same prefix hash, and notes what neighbours share. */
  sort(from: number, to: number): void {
    if (to - from < 2) return;
    this.#open.push({ from, to, depth: 0 });
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop()) {
      this.#split({ from: next.from, to: next.to, depth: this.#sharedDepth(next) });
    }
  }

  /** How many blocks all lines of a segment share. */
  #sharedDepth({ from, to, depth }: Segment): number {
    const { order } = this.#lines;
    const bounds = this.#bounds;
    const chains = this.#chains;
    const first = order[from] ?? 0;
    const start = bounds[first] ?? 0;
    let shared = (bounds[first + 1] ?? 0) - start;
    let block = chains.at(start + shared - 1);
    for (let place = from + 1; place < to && shared > depth; place++) {
      const line = order[place] ?? 0;
      const end = (bounds[line] ?? 0) + shared;
      // Most lines of a segment share all of that.
      if (end <= (bounds[line + 1] ?? 0) && chains.at(end - 1) === block) continue;
      shared = this.#sharedBlocks(first, line, { least: depth, most: shared });
      block = chains.at(start + shared - 1);
    }
    return shared;
  }

  /** Blocks that two lines share, by bisection: equal hashes mean that all blocks before are equal. */
  #sharedBlocks(a: number, b: number, bounds: { least: number; most: number }): number {
    const atA = this.#bounds[a] ?? 0;
    const atB = this.#bounds[b] ?? 0;
    let { least } = bounds;
    let most = Math.min(bounds.most, (this.#bounds[b + 1] ?? 0) - atB);
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (this.#chains.at(atA + middle - 1) === this.#chains.at(atB + middle - 1)) least = middle;
      else most = middle - 1;
    }
    return least;
  }

  /** Groups a segment, which has at least two lines, by the first block that they do not all share. */
  #split(segment: Segment): void {
    const { from, to, depth } = segment;
    const groups = this.#countGroups(segment);
    // Between two groups, neighbours share what all lines share. Groups overwrite their inner places later.
    this.#lines.shared.fill(depth, from + 1, to);
    if (groups === to - from) return;
    const sizes = this.#sizes.subarray(0, groups);
    this.#gather(segment, sizes);
    let place = from;
    for (const size of sizes) {
      if (size > 1) this.#open.push({ from: place, to: place + size, depth: depth + 1 });
      place += size;
    }
  }

  /** Numbers the groups in the order of first appearance and counts their lines. Returns how many groups there are. */
  #countGroups({ from, to, depth }: Segment): number {
    const { order } = this.#lines;
    const bounds = this.#bounds;
    this.#reserve(to - from);
    this.#table.reset(to - from);
    const groups = this.#groups;
    const sizes = this.#sizes;
    let count = 0;
    for (let place = from; place < to; place++) {
      const line = order[place] ?? 0;
      const at = (bounds[line] ?? 0) + depth;
      // A line that ends here shares no further block, so it is a group of its own.
      const isEnd = at >= (bounds[line + 1] ?? 0);
      const group = isEnd ? count : this.#table.numberOf(this.#chains.at(at), count);
      groups[place - from] = group;
      if (group < count) sizes[group] = (sizes[group] ?? 0) + 1;
      else sizes[count++] = 1;
    }
    return count;
  }

  /** Moves the lines of each group together. */
  #gather({ from, to }: Segment, sizes: Uint32Array): void {
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
    this.#sizes = new Uint32Array(lines);
  }
}
