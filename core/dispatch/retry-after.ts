/** A `Retry-After` beyond this counts as this much. */
const MAX_RETRY_AFTER_MS = 300_000;

const HTTP_DATE = /^[A-Z][a-z]+,? .+ GMT$/;

/** Ms that a `Retry-After` asks for, between 0 and 5 min; null where absent or malformed. */
export function retryAfterMs(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER_MS);
  const dateMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(dateMs)) return null;
  return Math.min(Math.max(dateMs - nowMs, 0), MAX_RETRY_AFTER_MS);
}
