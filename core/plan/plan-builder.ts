import { ChainList } from './chain-list';
import { encodePlanEntry, PLAN_ENTRY_BYTES, type PlanEntry } from './plan-entry';
import { planOrder } from './plan-order';
import type { PrefixChain } from './prefix-chain';
import { encodeRuns } from './runs';

const FIRST_BYTES = 64 * PLAN_ENTRY_BYTES;
/** Entries are kept in pages, so that a large plan grows without copying. */
const PAGE_ENTRIES = 4096;
const PAGE_BYTES = PAGE_ENTRIES * PLAN_ENTRY_BYTES;
const HASH_AT = 12;

/** Collects the plan entries of one model, 16 bytes each; entries arrive in input order. */
export interface PlanBuilder {
  readonly count: number;
  /** Adds a request with the chain of its prompt, which is copied. */
  add(entry: PlanEntry, chain: PrefixChain): void;
  /** Sorts the plan. Nothing may be added after it. */
  build(): BuiltPlan;
}

/** A plan in the order of sending ({@link planOrder}). */
export interface BuiltPlan {
  /** The plan's bytes. A piece is valid until the next one is requested. */
  pieces(): AsyncGenerator<Buffer>;
  /** The content of the runs object; null if the plan needs none (docs/design/journal.md#runs). */
  readonly runs: Buffer | null;
}

/** An empty {@link PlanBuilder}. */
export function createPlanBuilder(): PlanBuilder {
  return new PagedPlan();
}

class PagedPlan implements PlanBuilder {
  count = 0;
  readonly #pages: Buffer[] = [];
  readonly #chains = new ChainList();

  add(entry: PlanEntry, chain: PrefixChain): void {
    const at = (this.count % PAGE_ENTRIES) * PLAN_ENTRY_BYTES;
    encodePlanEntry(this.#pageFor(at), at, entry);
    this.#chains.push(chain);
    this.count++;
  }

  build(): BuiltPlan {
    const { entries, marks } = planOrder(
      this.count,
      (index) => this.#page(index).readUInt32LE(byteInPage(index) + HASH_AT),
      this.#chains,
    );
    return {
      pieces: () => this.#pieces(entries),
      runs: marks === null ? null : encodeRuns(marks),
    };
  }

  async *#pieces(order: Uint32Array | null): AsyncGenerator<Buffer> {
    yield* order === null ? this.#inInputOrder() : this.#inOrder(order);
  }

  *#inInputOrder(): Generator<Buffer> {
    for (let from = 0; from < this.count; from += PAGE_ENTRIES) {
      const entries = Math.min(PAGE_ENTRIES, this.count - from);
      yield this.#page(from).subarray(0, entries * PLAN_ENTRY_BYTES);
    }
  }

  *#inOrder(order: Uint32Array): Generator<Buffer> {
    const piece = Buffer.allocUnsafeSlow(Math.min(PAGE_BYTES, this.count * PLAN_ENTRY_BYTES));
    let used = 0;
    for (let place = 0; place < this.count; place++) {
      const index = order[place] ?? 0;
      const from = byteInPage(index);
      used += this.#page(index).copy(piece, used, from, from + PLAN_ENTRY_BYTES);
      if (used < piece.length) continue;
      yield piece;
      used = 0;
    }
    if (used > 0) yield piece.subarray(0, used);
  }

  #page(index: number): Buffer {
    const page = this.#pages[Math.floor(index / PAGE_ENTRIES)];
    if (page === undefined) throw new RangeError(`no plan entry ${index}`);
    return page;
  }

  /**
   * The last page, large enough for an entry at byte `at`. The first page starts small, because a file
   * may have many models.
   */
  #pageFor(at: number): Buffer {
    const last = this.#pages.at(-1);
    if (last === undefined) return this.#pushed(Buffer.allocUnsafe(FIRST_BYTES));
    if (at === 0) return this.#pushed(Buffer.allocUnsafeSlow(PAGE_BYTES));
    if (at < last.length) return last;
    const larger = Buffer.allocUnsafeSlow(2 * last.length);
    last.copy(larger);
    this.#pages.pop();
    return this.#pushed(larger);
  }

  #pushed(page: Buffer): Buffer {
    this.#pages.push(page);
    return page;
  }
}

function byteInPage(index: number): number {
  return (index % PAGE_ENTRIES) * PLAN_ENTRY_BYTES;
}
