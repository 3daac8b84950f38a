/** `usage` of chat completions and completions. */
export function usageOf(
  promptTokens: number,
  cachedTokens: number,
  outputTokens: number,
): Record<string, unknown> {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: outputTokens,
    total_tokens: promptTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}
