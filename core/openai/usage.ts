import { NO_USAGE, type Usage } from '../batch/counts';
import { isJsonObject } from './json-object';

/** A larger number is ignored: a double cannot represent every integer there. */
const MAX_TOKENS = Number.MAX_SAFE_INTEGER;

/**
 * Token usage from an answer's `usage` member, with the names of chat, completions and embeddings
 * (`prompt_tokens` …) or of responses (`input_tokens` …). Missing and invalid values count as 0; a missing
 * total is input + output (docs/design/api-contract.md#batch-usage).
 */
export function usageOf(usage: unknown): Usage {
  if (!isJsonObject(usage)) return NO_USAGE;
  const inputTokens = firstTokens(usage['prompt_tokens'], usage['input_tokens']) ?? 0;
  const outputTokens = firstTokens(usage['completion_tokens'], usage['output_tokens']) ?? 0;
  const total = firstTokens(usage['total_tokens']);
  return {
    inputTokens,
    cachedTokens: detail(usage, ['prompt_tokens_details', 'input_tokens_details'], 'cached_tokens'),
    outputTokens,
    reasoningTokens: detail(
      usage,
      ['completion_tokens_details', 'output_tokens_details'],
      'reasoning_tokens',
    ),
    totalTokens: total ?? Math.min(inputTokens + outputTokens, MAX_TOKENS),
  };
}

function detail(
  usage: Readonly<Record<string, unknown>>,
  groups: readonly string[],
  name: string,
): number {
  const values = groups.map((group) => {
    const details = usage[group];
    return isJsonObject(details) ? details[name] : undefined;
  });
  return firstTokens(...values) ?? 0;
}

/** The first valid number of tokens, or null. */
function firstTokens(...values: readonly unknown[]): number | null {
  for (const value of values) {
    if (typeof value === 'number' && value >= 0 && value <= MAX_TOKENS) return Math.floor(value);
  }
  return null;
}
