/** Lowest level of a part's log lines that a person at the terminal sees. */
export type ShownLevel = 'info' | 'warn' | 'error' | 'none';

const RANKS: Readonly<Record<string, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  warning: 40,
  error: 50,
  fatal: 60,
  panic: 60,
  dpanic: 60,
};
const NAME_WIDTH = 9;
/** Members that every line has, or that the prefix says already. */
const LEFT_OUT = new Set([
  'level',
  'time',
  'ts',
  'msg',
  'name',
  'pid',
  'hostname',
  'logging-call-at',
]);

/**
 * A log line of a part as the terminal shows it, prefixed by the part's name; `null` where it is below
 * `shown`. JSON lines (ours, Temporal's) become one readable line; text is judged by its own words.
 */
export function terminalLine(part: string, line: string, shown: ShownLevel): string | null {
  if (line.trim() === '' || shown === 'none') return null;
  const least = RANKS[shown] ?? 0;
  const fields = parse(line);
  const prefix = part.padEnd(NAME_WIDTH);
  if (fields === null) return textRank(part, line) >= least ? `${prefix} ${line}` : null;
  const level = String(fields['level']).toLowerCase();
  // What the SDK tells of itself at info is its inner life, not a batch's.
  const floor = 'sdkComponent' in fields ? Math.max(least, RANKS['warn'] ?? 0) : least;
  if ((RANKS[level] ?? 0) < floor) return null;
  const rest = Object.entries(fields)
    .filter(([key]) => !LEFT_OUT.has(key))
    .map(([key, value]) => ` ${key}=${shortValue(value)}`);
  return `${prefix} ${level.padEnd(5)} ${String(fields['msg'])}${rest.join('')}`;
}

function parse(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/**
 * Rank of a line that is no JSON. Postgres writes `LOG:`, `FATAL:` (its clients' mistakes, `ERROR:`,
 * are told by the clients); Temporal writes a banner; from ours text is a crash.
 */
function textRank(part: string, line: string): number {
  const serious: Readonly<Record<string, RegExp>> = {
    postgres: /\b(FATAL|PANIC):/,
    temporal: /\b(error|panic|fatal)\b/i,
  };
  const isSerious = serious[part]?.test(line) ?? true;
  return isSerious ? (RANKS['error'] ?? 0) : 0;
}

/** An error is its message here; its stack is in the file. */
function shortValue(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'stack' in value && 'message' in value) {
    return JSON.stringify(value.message);
  }
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return typeof value === 'string' && /\s/.test(text) ? JSON.stringify(text) : text;
}
