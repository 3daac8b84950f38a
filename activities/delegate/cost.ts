import type { DelegateConfig } from '../../platform/config-providers';
import type { JobUsage } from '../../core/delegation/job-counts';

const MILLION = 1_000_000;

/** What a job costs in US dollars; null without a configured price. Prices are per million tokens. */
export function costOf(usage: JobUsage, price: DelegateConfig['price']): number | null {
  if (price === undefined) return null;
  const { inputTokens, cachedTokens, outputTokens } = usage;
  const fresh = Math.max(0, inputTokens - cachedTokens);
  const input = fresh * price.input + cachedTokens * (price.cached ?? price.input);
  return (input + outputTokens * price.output) / MILLION;
}
