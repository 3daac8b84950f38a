import type { Stack } from '../../embedded/stack';
import type { StackAddresses } from '../../embedded/start-components';
import { installSignals } from '../../platform/shutdown';
import { say, sayError } from '../output';
import type { StackTerminal } from './stack-terminal';

const FORCED_EXIT = 130;

/** A stack, and what to do with it. */
export interface StackRun {
  readonly stack: Stack;
  readonly terminal: StackTerminal;
  /** Whether a signal is a failure (`demo`) or the normal end (`dev`). */
  readonly onSignal: 'fail' | 'stop';
  /** Uses the stack, which is stopped afterwards. `signal` aborts at Ctrl-C. */
  work(addresses: StackAddresses, signal: AbortSignal): Promise<void>;
}

/**
 * Starts a stack, does the work, and drains the stack. A second signal, at least 1 s after the first, kills
 * everything at once. Errors are reported and make the exit status 1.
 */
export async function withStack({ stack, terminal, onSignal, work }: StackRun): Promise<void> {
  const abort = new AbortController();
  const signalled = new Promise<void>((resolve) => {
    installSignals({
      drain: (signal) => {
        say(`${signal}: draining; a second signal kills everything at once`);
        abort.abort();
        if (onSignal === 'fail') process.exitCode = 1;
        resolve();
      },
      force: () => {
        say('second signal: killing everything at once');
        stack.kill();
        process.exit(FORCED_EXIT);
      },
    });
  });
  const crashed = new Promise<never>((_, reject) => {
    // A bug of our own must not leave the components running.
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
  // Stopping the components makes pending calls fail: do not report that.
  worked.catch(() => undefined);
  terminal.quiet();
  await stack.stop(terminal.onPhase);
}
