import { shortened } from '../batches/human-format';
import type { Color, Paint } from '../batches/paint';

/** A column of a {@link fittedTable}. Its cells are texts, or texts with a color. */
export interface Column<R> {
  readonly title: string;
  readonly cell: (row: R) => string | readonly [color: Color, text: string];
  /**
   * `name`, `note`: aligned left, and shortened if there is no room, notes first. `word`: aligned left. By default
   * aligned right.
   */
  readonly kind?: 'name' | 'note' | 'word' | 'number';
}

/** How a table is drawn. */
export interface TableStyle {
  /** Characters of a line. */
  readonly width: number;
  readonly paint: Paint;
}

const GAP = 2;
/** A name is not cut below this. */
const LEAST_NAME = 8;
/** Longer texts are cut although there is room: one long name must not push all columns away. */
const MOST_TEXT = 48;

/**
 * The lines of a table with a title line. If it is too wide, notes and names are shortened first; then the last columns are
 * left out, so the most important ones come first.
 */
export function fittedTable<R>(
  rows: readonly R[],
  columns: readonly Column<R>[],
  { width, paint }: TableStyle,
): string[] {
  const cells = columns.map((column) => [
    ['dim', column.title] as const,
    ...rows.map(cellOf(column)),
  ]);
  const widths = cells.map((column) => Math.max(...column.map(([, text]) => text.length)));
  const fitted = fit(widths, columns, width);
  return [null, ...rows].map((_row, line) => {
    const texts = fitted.map((size, i) => {
      const [color, text] = cells[i]?.[line] ?? ['', ''];
      const cut = shortened(text, size);
      const isText = isLeft(columns[i]);
      const isLast = i === fitted.length - 1;
      const padding = isLast && isText ? '' : ' '.repeat(size - cut.length);
      const painted = color === '' || cut === '' ? cut : paint(color, cut);
      return isText ? painted + padding : padding + painted;
    });
    return texts.join(' '.repeat(GAP)).trimEnd();
  });
}

function cellOf<R>({ cell }: Column<R>) {
  return (row: R): readonly [color: Color | '', text: string] => {
    const value = cell(row);
    const [color, text] = typeof value === 'string' ? (['', value] as const) : value;
    return [color, shortened(text, MOST_TEXT)];
  };
}

/** Widths of the columns that are shown. */
function fit(
  widths: readonly number[],
  columns: readonly Column<never>[],
  width: number,
): number[] {
  const fitted = [...widths];
  const excess = () => fitted.reduce((sum, size) => sum + size + GAP, -GAP) - width;
  for (const kind of ['note', 'name'] as const) {
    while (excess() > 0) {
      const longest = longestOf(fitted, (i) => columns[i]?.kind === kind);
      if (longest === -1) break;
      fitted[longest] = (fitted[longest] ?? 0) - 1;
    }
  }
  while (fitted.length > 1 && excess() > 0) fitted.pop();
  // A column that was left out may leave room for the names.
  fitted.forEach((size, i) => {
    fitted[i] = Math.min(widths[i] ?? size, size + Math.max(0, -excess()));
  });
  return fitted;
}

/** The widest of some columns that may still be shortened; -1 if there is none. */
function longestOf(widths: readonly number[], isMeant: (column: number) => boolean): number {
  let longest = -1;
  widths.forEach((size, i) => {
    if (isMeant(i) && size > LEAST_NAME && size > (widths[longest] ?? 0)) longest = i;
  });
  return longest;
}

function isLeft(column: Column<never> | undefined): boolean {
  return column !== undefined && ['name', 'note', 'word'].includes(column.kind ?? 'number');
}
