import type { StackTerminal } from '../../../cli/stack/stack-terminal';
import { withStack } from '../../../cli/stack/with-stack';
import type { Stack } from '../../../embedded/stack';
import type { StackAddresses } from '../../../embedded/start-components';

const ADDRESSES: StackAddresses = {
  api: 'http://127.0.0.1:1/v1',
  gateway: null,
  temporal: '127.0.0.1:2',
  namespace: 'default',
  ui: null,
  simulator: true,
  logs: '/nowhere',
};

function setUp(changes: Partial<Stack> = {}) {
  const calls: string[] = [];
  const stack: Stack = {
    start: () => Promise.resolve(ADDRESSES),
    failed: new Promise<never>(() => undefined),
    stop: async () => void calls.push('stop'),
    kill: () => void calls.push('kill'),
    ...changes,
  };
  const nothing = () => undefined;
  const terminal: StackTerminal = {
    say: nothing,
    onLine: nothing,
    onEvent: nothing,
    onPhase: nothing,
    quiet: nothing,
  };
  return { calls, stack, terminal };
}

const forever = () => new Promise<never>(() => undefined);

beforeEach(() => {
  process.exitCode = undefined;
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
});
afterEach(() => {
  jest.restoreAllMocks();
  process.removeAllListeners('SIGINT').removeAllListeners('SIGTERM').removeAllListeners('SIGHUP');
  process.removeAllListeners('uncaughtException');
  process.exitCode = undefined;
});

describe('a command with a stack', () => {
  it('stops the stack when its work is done', async () => {
    const { calls, ...rest } = setUp();
    const work = async ({ api }: StackAddresses) => void calls.push(api);
    await withStack({ ...rest, onSignal: 'fail', work });
    expect(calls).toEqual([ADDRESSES.api, 'stop']);
    expect(process.exitCode).toBeUndefined();
  });

  it.each([
    ['fail', 1],
    ['stop', undefined],
  ] as const)(
    'drains at a signal; with onSignal "%s" the exit status is %s',
    async (onSignal, status) => {
      const { calls, ...rest } = setUp();
      let aborted: AbortSignal | undefined;
      const done = withStack({
        ...rest,
        onSignal,
        work: (_, signal) => {
          aborted = signal;
          process.emit('SIGTERM', 'SIGTERM');
          return forever();
        },
      });
      await done;
      expect(calls).toEqual(['stop']);
      expect(aborted?.aborted).toBe(true);
      expect(process.exitCode).toBe(status);
    },
  );

  it.each([
    ['the start fails', { start: () => Promise.reject(new Error('no')) }],
    ['a component keeps dying', { failed: Promise.reject(new Error('no')) }],
  ])('stops everything and exits with 1 if %s', async (_, change) => {
    const { calls, ...rest } = setUp(change);
    await withStack({ ...rest, onSignal: 'stop', work: forever });
    expect(calls).toEqual(['stop']);
    expect(process.exitCode).toBe(1);
  });
});
