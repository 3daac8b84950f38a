import type { Batch } from 'openai/resources/batches';
import type { Environment } from '../../platform/config';
import type { Screen } from './client-io';

const CODES = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2, bold: 1 } as const;

/** Colors and styles of {@link Paint}. */
export type Color = keyof typeof CODES;

/** Colors a text, or returns it unchanged if colors are off. */
export type Paint = (color: Color, text: string) => string;

/** Colors are on for terminals, except with `NO_COLOR` or a dumb terminal. */
export function paintFor(screen: Screen, env: Environment): Paint {
  const isWanted = screen.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  return isWanted
    ? (color, text) => `\u001b[${CODES[color]}m${text}\u001b[0m`
    : (_color, text) => text;
}

/** The color of a batch status. */
export function statusColor(status: Batch['status']): Color {
  switch (status) {
    case 'completed':
      return 'green';
    case 'failed':
    case 'expired':
      return 'red';
    case 'cancelling':
    case 'cancelled':
      return 'yellow';
    case 'validating':
    case 'in_progress':
    case 'finalizing':
      return 'cyan';
  }
}

/** A cell of a table: plain text, or text with a color. */
export type Cell = string | readonly [color: Color, text: string];

/** Rows with aligned columns. Colors do not count as width. */
export function paintedTable(rows: readonly (readonly Cell[])[], paint: Paint): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, textOf(cell).length);
    });
  }
  return rows.map((row) => paintedRow(row, widths, paint)).join('\n');
}

function paintedRow(row: readonly Cell[], widths: readonly number[], paint: Paint): string {
  const cells = row.map((cell, column) => {
    const isLast = column === row.length - 1;
    const text = textOf(cell);
    const padding = isLast ? '' : ' '.repeat((widths[column] ?? 0) - text.length);
    return (typeof cell === 'string' || text === '' ? text : paint(cell[0], text)) + padding;
  });
  return cells.join('  ').trimEnd();
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell[1];
}
