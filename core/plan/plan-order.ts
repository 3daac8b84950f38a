import type { ChainList } from './chain-list';
import { DepthFirstOrder } from './depth-first';
import { inputOrder, orderByHash } from './hash-order';
import { markRuns } from './run-marks';
import { RUN_MARK } from './runs';

/** The order in which a model's lines are sent. */
export interface PlanOrder {
  /** Entry number by place; null if the lines are sent in input order. */
  readonly entries: Uint32Array | null;
  /** A mark by place (core/plan/runs.ts); null if the runs are those of equal prefix hashes. */
  readonly marks: Uint8Array | null;
}

/**
 * Orders lines by their prefix hashes, so that requests with the same system prompt are sent back to back. Lines
 * with the same hash are sorted depth first over what else their prompts share, else they keep the order of
 * the input (docs/design/batch-path.md#order-of-sending).
 */
export function planOrder(hashes: Uint32Array, chains: ChainList): PlanOrder {
  const count = hashes.length;
  const byHash = orderByHash(hashes);
  if (chains.isEmpty) return { entries: byHash, marks: null };
  const order = byHash ?? inputOrder(count);
  const marks = new Uint8Array(count);
  const shared = new Uint16Array(count);
  const depthFirst = new DepthFirstOrder({ order, shared }, chains);
  let isPlain = true;
  for (let from = 0; from < count;) {
    const to = groupEnd(order, hashes, from);
    depthFirst.sort(from, to);
    // A system prompt counts as one block, however long it is.
    const hasSystem = hashes[order[from] ?? 0] !== 0;
    const system = hasSystem ? 1 : 0;
    markRuns(marks, { from, to, sharedWithPrevious: (place) => (shared[place] ?? 0) + system });
    isPlain &&= isOneRun(marks.subarray(from, to), hasSystem);
    from = to;
  }
  return { entries: isInputOrder(order) ? null : order, marks: isPlain ? null : marks };
}

/** Position after the last place with the same hash as `from`. */
function groupEnd(order: Uint32Array, hashes: Uint32Array, from: number): number {
  const hash = hashes[order[from] ?? 0] ?? 0;
  let to = from + 1;
  while (to < order.length && hashes[order[to] ?? 0] === hash) to++;
  return to;
}

function isInputOrder(order: Uint32Array): boolean {
  for (let place = 0; place < order.length; place++) if (order[place] !== place) return false;
  return true;
}

/** Whether the marks of lines of one prefix hash say no more than their hash. */
function isOneRun(marks: Uint8Array, hasSystem: boolean): boolean {
  for (let i = 1; i < marks.length; i++) if (marks[i] !== RUN_MARK.none) return false;
  return marks.length === 1 || marks[0] === (hasSystem ? RUN_MARK.shared : RUN_MARK.single);
}
