import { createStack, type Stack, type StackAddresses } from '../embedded/stack';
import { installSignals } from '../platform/shutdown';
import { say, sayError } from './output';
import { sourcesOf, type StackFlags } from './stack-flags';
import { createStackTerminal, type ShownLevels, type StackTerminal } from './terminal';

const SHOWN: ShownLevels = { api: 'info', worker: 'info', simulator: 'warn', temporal: 'warn' };
const FORCED_EXIT = 130;

/** `nightshift dev`: the whole stack until Ctrl-C; unfinished batches go on with the next start. */
export async function runDev(flags: StackFlags): Promise<void> {
  const terminal = createStackTerminal(SHOWN);
  const stack = createStack({
    ...terminal,
    dataDir: flags.dataDir,
    sources: sourcesOf(flags),
    simulator: flags.simulator,
    apiPort: 'exactly',
  });
  await runUntilSignal(stack, terminal, (addresses) => {
    process.stdout.write(`${readyLine(addresses)}\n`);
    say(`logs are in ${addresses.logs}; Ctrl-C drains and stops`);
  });
}

/**
 * Starts a stack, hands its addresses to `whenReady`, and stops it after the first signal. A second
 * signal, at least 1 s later, ends everything at once.
 *
 * @throws what the start or a part that keeps dying ended with, after everything was stopped
 */
export async function runUntilSignal(
  stack: Stack,
  terminal: StackTerminal,
  whenReady: (addresses: StackAddresses) => void,
): Promise<void> {
  let drain: (signal: NodeJS.Signals) => void = () => undefined;
  const signalled = new Promise<NodeJS.Signals>((resolve) => (drain = resolve));
  installSignals({
    drain,
    force: () => {
      say('second signal: ending at once');
      stack.kill();
      process.exit(FORCED_EXIT);
    },
  });
  const started = stack.start().then(whenReady);
  try {
    const first = await Promise.race([signalled, stack.failed, started.then(() => signalled)]);
    say(`${first}: draining; a second signal ends at once`);
  } catch (error) {
    sayError(error);
    process.exitCode = 1;
  }
  started.catch(() => undefined);
  terminal.quiet();
  await stack.stop(terminal.onPhase);
}

/** The one line on stdout by which programs know that all is ready (design §6). */
export function readyLine({ api, temporal, ui }: StackAddresses): string {
  const parts = [`api=${api}`, `temporal=${temporal}`, ...(ui === null ? [] : [`ui=${ui}`])];
  return `nightshift ready ${parts.join(' ')} pid=${process.pid}`;
}
