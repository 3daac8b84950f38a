/** Lowest level of a component's log lines that the terminal shows. */
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
/** Members that every line has, or that the prefix repeats. */
const HIDDEN_MEMBERS = new Set([
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
 * A component's log line as the terminal shows it, prefixed by the component's name; `null` if its level
 * is below `shown`. JSON lines (ours and Temporal's) become readable text. The level of plain text is
 * guessed from its words.
 */
export function terminalLine(component: string, line: string, shown: ShownLevel): string | null {
  if (line.trim() === '' || shown === 'none') return null;
  const least = RANKS[shown] ?? 0;
  const fields = parse(line);
  const prefix = component.padEnd(NAME_WIDTH);
  if (fields === null) return textRank(component, line) >= least ? `${prefix} ${line}` : null;
  const level = String(fields['level']).toLowerCase();
  // Temporal's SDK logs its own state changes at info; they say nothing about batches.
  const floor = 'sdkComponent' in fields ? Math.max(least, RANKS['warn'] ?? 0) : least;
  if ((RANKS[level] ?? 0) < floor) return null;
  const rest = Object.entries(fields)
    .filter(([key]) => !HIDDEN_MEMBERS.has(key))
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
 * Level of a line that is not JSON. PostgreSQL prefixes lines with `LOG:`, `ERROR:` (a mistake of a
 * client, which reports it itself) or `FATAL:`. Temporal prints a banner. In our own processes plain text
 * means a crash.
 */
function textRank(component: string, line: string): number {
  const serious: Readonly<Record<string, RegExp>> = {
    postgres: /\b(FATAL|PANIC):/,
    temporal: /\b(error|panic|fatal)\b/i,
  };
  const isSerious = serious[component]?.test(line) ?? true;
  return isSerious ? (RANKS['error'] ?? 0) : 0;
}

/** Shows an error as its message; the stack is in the log file. */
function shortValue(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'stack' in value && 'message' in value) {
    return JSON.stringify(value.message);
  }
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return typeof value === 'string' && /\s/.test(text) ? JSON.stringify(text) : text;
}
