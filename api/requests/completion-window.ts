const UNIT_SEC: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const MAX_SEC = 30 * 86_400;

/** A whole number and a unit. */
export const COMPLETION_WINDOW = /^([1-9][0-9]{0,9})([smhd])$/;

/**
 * Seconds of `24h`, `90s`, `30m`, `2d`, from 1 second to 30 days; null for anything else
 * (docs/design/api-contract.md#completion-window).
 */
export function completionWindowSec(text: string): number | null {
  const match = COMPLETION_WINDOW.exec(text);
  if (match === null) return null;
  const seconds = Number(match[1]) * (UNIT_SEC[match[2] ?? ''] ?? NaN);
  return seconds <= MAX_SEC ? seconds : null;
}
