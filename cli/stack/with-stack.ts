import type { Stack } from '../../embedded/stack';
import type { StackAddresses } from '../../embedded/start-components';
import { installSignals } from '../../platform/shutdown';
import { say, sayError } from '../output';
import type { StackTerminal } from './stack-terminal';

const FORCED_EXIT = 130;

/** A stack and what it is started for. */
export interface StackRun {
  readonly stack: Stack;
  readonly terminal: StackTerminal;
  /** Whether a signal is a failure (`demo`) or the way to stop (`dev`). */
  readonly onSignal: 'fail' | 'stop';
  /** What to do with the stack; it is stopped when this is done. `signal` aborts at Ctrl-C. */
  work(addresses: StackAddresses, signal: AbortSignal): Promise<void>;
}

/**
 * Starts a stack, does the work, drains the stack. A second signal, at least 1 s after the first, ends
 * everything at once. What went wrong is said, and the exit status is 1.
 */
export async function withStack({ stack, terminal, onSignal, work }: StackRun): Promise<void> {
  const abort = new AbortController();
  const signalled = new Promise<void>((resolve) => {
    installSignals({
      drain: (signal) => {
        say(`${signal}: draining; a second signal ends at once`);
        abort.abort();
        if (onSignal === 'fail') process.exitCode = 1;
        resolve();
      },
      force: () => {
        say('second signal: ending at once');
        stack.kill();
        process.exit(FORCED_EXIT);
      },
    });
  });
  const crashed = new Promise<never>((_, reject) => {
    // Our own mistake must not leave the parts behind.
    process.on('uncaughtException', reject);
  });
  crashed.catch(() => undefined);
  const worked = stack.start().then((addresses) => work(addresses, abort.signal));
  try {
    await Promise.race([worked, signalled, stack.failed, crashed]);
  } catch (error) {
    sayError(error);
    process.exitCode = 1;
  }
  // Stopping the parts ends what still waits for them: that is no news.
  worked.catch(() => undefined);
  terminal.quiet();
  await stack.stop(terminal.onPhase);
}
