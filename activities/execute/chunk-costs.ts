import { ExpectedOutput, TokenCosts } from '../../core/dispatch/cost';
import { isUnserved, type TryOutcome } from '../../core/dispatch/outcome';
import type { Usage } from '../../core/batch/counts';
import type { ChunkLine } from './chunk-ledger';

const COSTS = new TokenCosts({ unitCost: false });

/** The part of a line that its expected cost depends on. */
type CostedLine = Pick<ChunkLine, 'position' | 'offset' | 'length'>;

/**
 * What the requests of one chunk cost, in the unit in which tenants share
 * (docs/design/flow-control.md#cost): expected before a request is sent, and real after its end.
 */
export interface LineCosts {
  /** The expected cost; null if `learn` must find it first. */
  expected(line: CostedLine): number | null;
  /** Finds the expected cost, and remembers it. Never rejects. */
  learn(line: CostedLine): Promise<number>;
  /** The real cost; null if it is not known. */
  real(outcome: TryOutcome, usage: Usage): number | null;
}

/** Costs of requests for text, in tokens. */
export class ChunkCosts implements LineCosts {
  readonly #output = new ExpectedOutput();

  /** The expected cost of a line of `length` bytes, most of which are its prompt. */
  expected({ length }: Pick<CostedLine, 'length'>): number {
    return COSTS.expected({ promptBytes: length, maxTokens: null }, this.#output);
  }

  learn(line: Pick<CostedLine, 'length'>): Promise<number> {
    return Promise.resolve(this.expected(line));
  }

  real(outcome: TryOutcome, { inputTokens, outputTokens }: Usage): number | null {
    if (isUnpaid(outcome)) return 0;
    if (inputTokens + outputTokens === 0) return null;
    return COSTS.real({ inputTokens, outputTokens }, this.#output);
  }
}

/** Whether no model server worked on the request, or it refused it. */
export function isUnpaid(outcome: TryOutcome): boolean {
  if (outcome.kind === 'answer') return outcome.status >= 400 || isUnserved(outcome);
  return outcome.reason === 'connect' || outcome.reason === 'unsent';
}
