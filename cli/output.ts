import { isNightshiftError } from '../core/errors';

/** Writes a sentence for the user to stderr. stdout is for results. */
export function say(message: string): void {
  process.stderr.write(`nightshift: ${message}\n`);
}

/** Writes an error to stderr: our own errors as their message, all others with their stack. */
export function sayError(error: unknown): void {
  if (isNightshiftError(error)) {
    say(error.message);
  } else {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}

/** Rows with aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** `1234567` as `1,234,567`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
