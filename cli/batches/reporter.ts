import type { Environment } from '../../platform/config';
import type { Screen } from './client-io';
import { paintFor, type Paint } from './paint';

/** Says news, one line each, and keeps one line at the bottom of a terminal that changes. */
export interface Reporter {
  /** Whether the bottom line is drawn. */
  readonly isLive: boolean;
  readonly paint: Paint;
  /** Width of the terminal in characters. */
  readonly columns: number;
  /** A line that stays. */
  say(message: string): void;
  /** A line that is drawn over the one before; nothing without a terminal. */
  status(text: string): void;
  /** Removes the bottom line. */
  clear(): void;
}

const REDRAW_MS = 80;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[K';

/** A reporter that writes to `screen`, which is stderr: stdout belongs to results. */
export function createReporter(screen: Screen, env: Environment): Reporter {
  const isLive = screen.isTTY === true && env['TERM'] !== 'dumb';
  let isDrawn = false;
  let drawnAtMs = -Infinity;
  const clear = (): void => {
    if (isDrawn) screen.write(CLEAR_LINE);
    isDrawn = false;
    drawnAtMs = -Infinity;
  };
  return {
    isLive,
    paint: paintFor(screen, env),
    get columns() {
      return screen.columns ?? DEFAULT_COLUMNS;
    },
    say(message) {
      clear();
      screen.write(`nightshift: ${message}\n`);
    },
    status(text) {
      if (!isLive || performance.now() - drawnAtMs < REDRAW_MS) return;
      screen.write(`${CLEAR_LINE}${text}`);
      isDrawn = true;
      drawnAtMs = performance.now();
    },
    clear,
  };
}
