import { grouped } from '../output';

const KILO = 1_000;
const BYTE_UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;
const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** `0.4 s`, `12 s`, `2 min 05 s`, `3 h 20 min`, `2 d 4 h`. */
export function humanDuration(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE_S) return `${whole} s`;
  if (whole < HOUR_S) return pair(whole, MINUTE_S, ['min', 's']);
  if (whole < DAY_S) return pair(Math.floor(whole / MINUTE_S), 60, ['h', 'min']);
  return pair(Math.floor(whole / HOUR_S), 24, ['d', 'h']);
}

function pair(amount: number, per: number, [big, small]: readonly [string, string]): string {
  const whole = `${Math.floor(amount / per)} ${big}`;
  const rest = amount % per;
  return rest === 0
    ? whole
    : `${whole} ${String(rest).padStart(small === 'h' ? 1 : 2, '0')} ${small}`;
}

/** `8.3`, `1,234`: a rate per second. */
export function humanRate(perSecond: number): string {
  return perSecond < 10 ? perSecond.toFixed(1) : grouped(Math.round(perSecond));
}

/** `812 bytes`, `1.4 MB`, in powers of 1,000. */
export function humanBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= KILO - 0.05 && unit < BYTE_UNITS.length - 1) {
    amount /= KILO;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** `2026-11-21 14:28:03` in the time zone of this machine. */
export function localTime(atSec: number): string {
  const at = new Date(atSec * 1_000);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** `3 min ago`, `in 23 h`, `now`: in one unit, for tables. */
export function relativeTime(atSec: number, nowMs: number): string {
  const seconds = Math.round(atSec - nowMs / 1_000);
  const size = Math.abs(seconds);
  if (size < 2) return 'now';
  const amount =
    size < MINUTE_S
      ? `${size} s`
      : size < HOUR_S
        ? `${Math.floor(size / MINUTE_S)} min`
        : size < 2 * DAY_S
          ? `${Math.floor(size / HOUR_S)} h`
          : `${Math.floor(size / DAY_S)} d`;
  return seconds < 0 ? `${amount} ago` : `in ${amount}`;
}

/** Untrusted text on one line, without characters that control a terminal. */
export function printable(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, '?')
    .trim();
}

/** At most `length` characters of {@link printable} text. */
export function shortened(text: string, length: number): string {
  const line = printable(text);
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}
