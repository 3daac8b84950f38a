/** Lines of a job, by the provider's count. */
export interface JobCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
}

/** Tokens of a job, as far as the provider says. */
export interface JobUsage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}
