import type { FlowScreen } from './flow-io';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_TO_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

const DEFAULT_ROWS = 24;
const DEFAULT_COLUMNS = 80;

/** A terminal whose whole screen is drawn. Its former content comes back with `close`. */
export interface FullScreen {
  readonly rows: number;
  readonly columns: number;
  /** Draws these lines. What does not fit is left out, and the last line says how much that is. */
  draw(lines: readonly string[]): void;
  close(): void;
}

/** Takes the alternate screen and hides the cursor. Lines must not be wider than the screen. */
export function openFullScreen(screen: FlowScreen): FullScreen {
  screen.write(ENTER);
  const rows = () => screen.rows ?? DEFAULT_ROWS;
  return {
    get rows() {
      return rows();
    },
    get columns() {
      return screen.columns ?? DEFAULT_COLUMNS;
    },
    draw: (lines) => {
      const shown = fitting(lines, rows());
      // One write, and no line is cleared before it is drawn: else the screen would flicker.
      const text = shown.map((line) => `${line}${CLEAR_TO_LINE_END}`).join('\r\n');
      screen.write(`${HOME}${text}${CLEAR_BELOW}`);
    },
    close: () => void screen.write(LEAVE),
  };
}

function fitting(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines;
  const hidden = lines.length - rows + 1;
  return [...lines.slice(0, rows - 1), `… ${hidden} more lines`];
}
