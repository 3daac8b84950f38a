/** A longer `Retry-After` of a model server counts as this. */
const MAX_RETRY_AFTER_MS = 300_000;

const HTTP_DATE = /^[A-Z][a-z]+,? .+ GMT$/;

/**
 * The pause of a `Retry-After` (seconds or a date), 0 ms to `maxMs`, 5 min by default; null if absent or
 * malformed.
 */
export function retryAfterMs(
  value: string | null,
  nowMs: number,
  maxMs = MAX_RETRY_AFTER_MS,
): number | null {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1_000, maxMs);
  const dateMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(dateMs)) return null;
  return Math.min(Math.max(dateMs - nowMs, 0), maxMs);
}
