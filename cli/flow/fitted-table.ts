import { shortened } from '../batches/human-format';
import type { Color, Paint } from '../batches/paint';

/** A column of a {@link fittedTable}. Its cells are texts, or texts with a color. */
export interface Column<R> {
  readonly title: string;
  readonly cell: (row: R) => string | readonly [color: Color, text: string];
  /** `name`: aligned left, and shortened if there is no room. `word`: aligned left. By default aligned right. */
  readonly kind?: 'name' | 'word' | 'number';
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
 * The lines of a table with a title line. If it is too wide, names are shortened first; then the last columns are
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
  const total = () => fitted.reduce((sum, size) => sum + size + GAP, -GAP);
  const longestName = () => {
    let longest = -1;
    fitted.forEach((size, i) => {
      const mayShrink = columns[i]?.kind === 'name' && size > LEAST_NAME;
      if (mayShrink && size > (fitted[longest] ?? 0)) longest = i;
    });
    return longest;
  };
  for (let i = longestName(); i !== -1 && total() > width; i = longestName()) {
    fitted[i] = (fitted[i] ?? 0) - 1;
  }
  while (fitted.length > 1 && total() > width) fitted.pop();
  return fitted;
}

function isLeft(column: Column<never> | undefined): boolean {
  return column?.kind === 'name' || column?.kind === 'word';
}
