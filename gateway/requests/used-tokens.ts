import type { TokenUsage } from '../../core/dispatch/cost';
import type { ExchangeEnd } from '../../inference/proxy/exchange-end';
import type { RequestHead } from './request-head';

/** Bytes of a prompt that are counted as one token. */
export const BYTES_PER_TOKEN = 4;

/** Input and output tokens; null if they are not known. A stream without usage has one token per event. */
export function usageOf(
  { usage, events }: ExchangeEnd,
  { promptBytes }: RequestHead,
): TokenUsage | null {
  if (usage !== null) return usage;
  if (events === 0) return null;
  return { inputTokens: promptBytes / BYTES_PER_TOKEN, outputTokens: events };
}

/** All tokens that an exchange is known to have used. */
export function tokensOf(end: ExchangeEnd, head: RequestHead): number {
  const usage = usageOf(end, head);
  return usage === null ? 0 : usage.inputTokens + usage.outputTokens;
}

/**
 * What shows how fast a backend is: the tokens of the answer. Input takes far less time, and its share differs from
 * request to request. Of an answer without tokens, the input counts.
 */
export function workOf(end: ExchangeEnd, head: RequestHead): number {
  const usage = usageOf(end, head);
  if (usage === null) return 0;
  return usage.outputTokens > 0 ? usage.outputTokens : usage.inputTokens;
}
