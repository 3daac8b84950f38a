import { encodePlanEntry, PLAN_ENTRY_BYTES, type PlanEntry } from './plan-entry';
import { sortPlan } from './plan-order';

const FIRST_CAPACITY = 64;

/** Collects the plan entries of one model at 16 bytes each; entries arrive in input order. */
export interface PlanBuilder {
  readonly count: number;
  add(entry: PlanEntry): void;
  /** The plan's bytes in dispatch order ({@link sortPlan}). The builder is used up. */
  build(): Buffer;
}

/** An empty {@link PlanBuilder}. */
export function createPlanBuilder(): PlanBuilder {
  let bytes: Buffer = Buffer.allocUnsafe(FIRST_CAPACITY * PLAN_ENTRY_BYTES);
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(entry) {
      const at = count * PLAN_ENTRY_BYTES;
      if (at === bytes.length) bytes = doubled(bytes);
      encodePlanEntry(bytes, at, entry);
      count++;
    },
    build: () => sortPlan(bytes.subarray(0, count * PLAN_ENTRY_BYTES)),
  };
}

function doubled(bytes: Buffer): Buffer {
  const larger = Buffer.allocUnsafe(bytes.length * 2);
  bytes.copy(larger);
  return larger;
}
