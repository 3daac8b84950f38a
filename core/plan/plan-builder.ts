import { ChainList } from './chain-list';
import type { PlanEntry } from './plan-entry';
import { planOrder } from './plan-order';
import { PlanPages } from './plan-pages';
import type { PrefixChain } from './prefix-chain';
import { encodeRuns } from './runs';

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
  readonly #entries = new PlanPages();
  readonly #chains = new ChainList();

  get count(): number {
    return this.#entries.count;
  }

  add(entry: PlanEntry, chain: PrefixChain): void {
    this.#entries.add(entry);
    this.#chains.push(chain);
  }

  build(): BuiltPlan {
    const { entries, marks } = planOrder(this.#entries.hashes(), this.#chains);
    return {
      pieces: () => this.#pieces(entries),
      runs: marks === null ? null : encodeRuns(marks),
    };
  }

  async *#pieces(order: Uint32Array | null): AsyncGenerator<Buffer> {
    yield* order === null ? this.#entries.inInputOrder() : this.#entries.inOrder(order);
  }
}
