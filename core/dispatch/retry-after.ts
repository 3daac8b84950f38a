/** A longer `Retry-After` counts as this. */
const MAX_RETRY_AFTER_MS = 300_000;

const HTTP_DATE = /^[A-Z][a-z]+,? .+ GMT$/;

/** The pause of a `Retry-After` (seconds or a date), 0 ms to 5 min; null if absent or malformed. */
export function retryAfterMs(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER_MS);
  const dateMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(dateMs)) return null;
  return Math.min(Math.max(dateMs - nowMs, 0), MAX_RETRY_AFTER_MS);
}
