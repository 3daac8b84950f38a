import { ExpectedOutput, TokenCosts } from '../../core/dispatch/cost';
import { isUnserved, type TryOutcome } from '../../core/dispatch/outcome';
import type { Usage } from '../../core/batch/counts';

const COSTS = new TokenCosts({ unitCost: false });

/**
 * What the requests of one chunk cost, in the unit in which tenants share
 * (docs/design/flow-control.md#cost): expected before a request is sent, and real after its end.
 */
export class ChunkCosts {
  readonly #output = new ExpectedOutput();

  /** The expected cost of a line of `length` bytes, most of which are its prompt. */
  expected({ length }: { readonly length: number }): number {
    return COSTS.expected({ promptBytes: length, maxTokens: null }, this.#output);
  }

  /** The real cost; null if it is not known. */
  real(outcome: TryOutcome, { inputTokens, outputTokens }: Usage): number | null {
    if (isUnpaid(outcome)) return 0;
    if (inputTokens + outputTokens === 0) return null;
    return COSTS.real({ inputTokens, outputTokens }, this.#output);
  }
}

/** Whether no model server worked on the request, or it refused it. */
function isUnpaid(outcome: TryOutcome): boolean {
  if (outcome.kind === 'answer') return outcome.status >= 400 || isUnserved(outcome);
  return outcome.reason === 'connect' || outcome.reason === 'unsent';
}
