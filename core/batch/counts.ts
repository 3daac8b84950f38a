/** OpenAI's `request_counts`; `completed + failed ≤ total`, equal only when `completed`. */
export interface RequestCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
}

/** Token usage of one answer or the sum over many; absent numbers count 0 (contract §6, §7.1). */
export interface Usage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly totalTokens: number;
}

/** Nothing used: where sums begin. */
export const NO_USAGE: Usage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
};

/** The sum, number by number. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: sum(a.inputTokens, b.inputTokens),
    cachedTokens: sum(a.cachedTokens, b.cachedTokens),
    outputTokens: sum(a.outputTokens, b.outputTokens),
    reasoningTokens: sum(a.reasoningTokens, b.reasoningTokens),
    totalTokens: sum(a.totalTokens, b.totalTokens),
  };
}

/** A model server that reports nonsense must not make a number that the database refuses. */
function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}
