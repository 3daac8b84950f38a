/** How large a request looks before it is sent. */
export interface RequestSize {
  /** Bytes of the members that hold the prompt. */
  readonly promptBytes: number;
  /** The client's own limit on output tokens; null if it gave none. */
  readonly maxTokens: number | null;
}

/** What a request turned out to be. */
export interface TokenUsage {
  readonly inputTokens: number;
  /** For a stream without usage, the number of its events. */
  readonly outputTokens: number;
}

const BYTES_PER_TOKEN = 4;
/** An output token keeps a backend busy for longer than an input token does. */
const OUTPUT_WEIGHT = 2;
const INITIAL_OUTPUT = 64;
/**
 * Servers report usage, and a wrong count must not make its tenant wait for ever. No context of a model is
 * that long.
 */
const MAX_TOKENS = 10_000_000;
/** Weight of an answer in the mean, after the first ones. */
const LEAST_WEIGHT = 0.1;

/**
 * The output that requests of a flow are expected to have: an exponentially weighted moving average. The
 * initial value counts like one answer, so the first answers have more weight than later ones.
 */
export class ExpectedOutput {
  #tokens = INITIAL_OUTPUT;
  #answers = 0;

  get tokens(): number {
    return this.#tokens;
  }

  onAnswer(outputTokens: number): void {
    this.#answers++;
    const weight = Math.max(LEAST_WEIGHT, 1 / (this.#answers + 1));
    this.#tokens += weight * (outputTokens - this.#tokens);
  }
}

/**
 * Costs of requests for text: input tokens and twice the output tokens, expected before a request is sent
 * and real after its end (docs/design/flow-control.md#cost).
 */
export class TokenCosts {
  readonly #isUnit: boolean;

  /** @param unitCost `unit_cost`: every request costs 1 */
  constructor({ unitCost }: { readonly unitCost: boolean }) {
    this.#isUnit = unitCost;
  }

  /** The cost to expect, a whole number of at least 1. */
  expected({ promptBytes, maxTokens }: RequestSize, output: ExpectedOutput): number {
    if (this.#isUnit) return 1;
    const outputTokens = Math.min(maxTokens ?? Infinity, output.tokens);
    const inputTokens = promptBytes / BYTES_PER_TOKEN;
    // Whole numbers, which the queue stores without an object for each.
    return Math.max(1, Math.ceil(costOf({ inputTokens, outputTokens })));
  }

  /** The real cost. The output that its flow is expected to have learns from it. */
  real(usage: TokenUsage, output: ExpectedOutput): number {
    const inputTokens = Math.min(usage.inputTokens, MAX_TOKENS);
    const outputTokens = Math.min(usage.outputTokens, MAX_TOKENS);
    output.onAnswer(outputTokens);
    return this.#isUnit ? 1 : costOf({ inputTokens, outputTokens });
  }
}

/** Cached input counts in full: the share of a flow must not depend on the cache of a backend. */
function costOf({ inputTokens, outputTokens }: TokenUsage): number {
  return inputTokens + OUTPUT_WEIGHT * outputTokens;
}
