import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
import { processEnvironment, type Environment } from '../../platform/config';
import type { SignalSource } from '../../platform/shutdown';

/** A stream of text for people: a terminal or a pipe. */
export interface Screen {
  readonly isTTY?: boolean;
  /** Width of a terminal in characters. */
  readonly columns?: number;
  write(text: string): unknown;
}

/** Everything of the process that the batch commands use. */
export interface ClientIo {
  /** Results: ids, tables, JSON, summaries. */
  readonly stdout: Screen & Writable;
  /** Progress and messages. */
  readonly stderr: Screen;
  readonly env: Environment;
  readonly signals: SignalSource;
  /**
   * Asks the person at the terminal. `null` means no answer: the input ended, or `signal` aborted.
   * Undefined if there is no terminal.
   */
  readonly ask?: (question: string, signal: AbortSignal) => Promise<string | null>;
  /** Shortest time between two polls of a batch. */
  readonly pollMs: number;
  exitWith(code: number): void;
}

const POLL_MS = 250;

/** The streams, signals and environment of this process. */
export function processIo(): ClientIo {
  const { stdin, stdout, stderr } = process;
  // `nightshift list | head` closes the pipe early; that is not an error.
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
  // Without raw mode, Ctrl-C remains a signal to the process.
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  return new Promise<string | null>((resolve) => {
    const noAnswer = (): void => {
      process.stderr.write('\n');
      resolve(null);
    };
    signal.addEventListener('abort', noAnswer, { once: true });
    lines.once('close', noAnswer);
    lines.question(question, (answer) => {
      lines.off('close', noAnswer);
      signal.removeEventListener('abort', noAnswer);
      resolve(answer);
    });
  }).finally(() => lines.close());
}
