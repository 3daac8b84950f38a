const UNIT_SEC: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const MAX_SEC = 30 * 86_400;

/** Seconds of `24h`, `90s`, `30m`, `2d`: 1 s to 30 d; null for anything else (contract §7.1). */
export function completionWindowSec(text: string): number | null {
  const match = /^([1-9][0-9]{0,9})([smhd])$/.exec(text);
  if (match === null) return null;
  const seconds = Number(match[1]) * (UNIT_SEC[match[2] ?? ''] ?? NaN);
  return seconds <= MAX_SEC ? seconds : null;
}
