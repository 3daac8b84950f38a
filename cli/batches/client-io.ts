import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
import { processEnvironment, type Environment } from '../../platform/config';
import type { SignalSource } from '../../platform/shutdown';

/** What is written for people: a terminal, a pipe, or a text in tests. */
export interface Screen {
  readonly isTTY?: boolean;
  /** Width of a terminal in characters. */
  readonly columns?: number;
  write(text: string): unknown;
}

/** Everything of the process that the client commands touch; tests give their own. */
export interface ClientIo {
  /** Results: ids, tables, JSON, summaries. */
  readonly stdout: Screen & Writable;
  /** Progress and news. */
  readonly stderr: Screen;
  readonly env: Environment;
  readonly signals: SignalSource;
  /**
   * Asks the person at the terminal; `null` where the question was left open (end of input, or
   * `signal`). Not there when nobody sits at a terminal.
   */
  readonly ask?: (question: string, signal: AbortSignal) => Promise<string | null>;
  /** Shortest time between two looks at a batch. */
  readonly pollMs: number;
  exitWith(code: number): void;
}

const POLL_MS = 250;

/** The streams, signals and environment of this process. */
export function processIo(): ClientIo {
  const { stdin, stdout, stderr } = process;
  // A reader that has seen enough, such as `head`, is no failure.
  stdout.on('error', (error: NodeJS.ErrnoException) =>
    process.exit(error.code === 'EPIPE' ? 0 : 1),
  );
  return {
    stdout,
    stderr,
    env: processEnvironment(),
    signals: process,
    ...(stdin.isTTY && stderr.isTTY ? { ask: askTerminal } : {}),
    pollMs: POLL_MS,
    exitWith: (code) => void (process.exitCode = code),
  };
}

function askTerminal(question: string, signal: AbortSignal): Promise<string | null> {
  // Not in raw mode: Ctrl-C stays a signal of the process.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  return new Promise<string | null>((resolve) => {
    const giveUp = (): void => {
      process.stderr.write('\n');
      resolve(null);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    lines.once('close', giveUp);
    lines.question(question, (answer) => {
      lines.off('close', giveUp);
      signal.removeEventListener('abort', giveUp);
      resolve(answer);
    });
  }).finally(() => lines.close());
}
