import { createStack } from '../../embedded/stack';
import type { StackAddresses } from '../../embedded/start-components';
import { shellWord } from '../batches/connection-flags';
import { say } from '../output';
import { sourcesOf, type StackFlags } from './stack-flags';
import { stackSettings } from './stack-settings';
import { createStackTerminal, type ShownLevels } from './stack-terminal';
import { withStack } from './with-stack';

const SHOWN: ShownLevels = {
  api: 'info',
  worker: 'info',
  gateway: 'warn',
  simulator: 'warn',
  temporal: 'warn',
};

/** `nightshift dev`: runs the whole stack until Ctrl-C. The next start continues unfinished batches. */
export async function runDev(flags: StackFlags): Promise<void> {
  const terminal = createStackTerminal(SHOWN);
  const stack = createStack({
    ...terminal,
    dataDir: flags.dataDir,
    sources: sourcesOf(flags),
    simulator: flags.simulator,
    gateway: flags.gateway,
    store: flags.store,
    apiPort: 'exactly',
    headless: flags.headless ?? false,
  });
  await withStack({
    stack,
    terminal,
    onSignal: 'stop',
    work: (addresses) => runUntilSignal(addresses, flags.dataDir),
  });
}

/** Announces that the stack is ready. Never resolves: only a signal ends the stack. */
function runUntilSignal(addresses: StackAddresses, dataDir: string): Promise<never> {
  process.stdout.write(`${readyLine(addresses)}\n`);
  say(`logs are in ${addresses.logs}; Ctrl-C drains and stops`);
  if (stackSettings(dataDir).auth.mode === 'api_key') {
    say(
      `the API requires a key: nightshift keys create --tenant NAME --data-dir ${shellWord(dataDir)}`,
    );
  }
  return new Promise<never>(() => undefined);
}

/** The line on stdout that tells programs that the stack is ready (docs/design/embedded-stack.md#ready-line). */
function readyLine({ api, gateway, temporal, ui }: StackAddresses): string {
  const members = [`api=${api}`, `temporal=${temporal}`];
  if (ui !== null) members.push(`ui=${ui}`);
  if (gateway !== null) members.push(`gateway=${gateway}`);
  return `nightshift ready ${members.join(' ')} pid=${process.pid}`;
}
