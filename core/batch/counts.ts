/** OpenAI's `request_counts`; `completed + failed ≤ total`, equal only when `completed`. */
export interface RequestCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
}

/** Token usage of one answer, or the sum over many (docs/design/api-contract.md#batch-usage). */
export interface Usage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly totalTokens: number;
}

/** No usage: the start of every sum. */
export const NO_USAGE: Usage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
};

/** The sum of each count. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: sum(a.inputTokens, b.inputTokens),
    cachedTokens: sum(a.cachedTokens, b.cachedTokens),
    outputTokens: sum(a.outputTokens, b.outputTokens),
    reasoningTokens: sum(a.reasoningTokens, b.reasoningTokens),
    totalTokens: sum(a.totalTokens, b.totalTokens),
  };
}

/** Clamped, because model servers may report any number and PostgreSQL refuses numbers that are too large. */
function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}
