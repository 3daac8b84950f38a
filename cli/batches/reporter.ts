import type { Environment } from '../../platform/config';
import type { Screen } from './client-io';
import { paintFor, type Paint } from './paint';

/** Writes messages, one line each, and redraws a status line at the bottom of a terminal. */
export interface Reporter {
  /** Whether there is a terminal for the status line. */
  readonly isLive: boolean;
  readonly paint: Paint;
  /** Width of the terminal in characters. */
  readonly columns: number;
  /** Writes a line that stays. */
  say(message: string): void;
  /** Redraws the status line; does nothing without a terminal. */
  status(text: string): void;
  /** Removes the status line. */
  clear(): void;
}

const REDRAW_MS = 80;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[K';

/** A reporter for `screen`, which is stderr: stdout is for results. */
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
