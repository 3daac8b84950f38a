import { pino } from 'pino';
import { serve } from '../../../cli/processes/serve';
import type { RunningProcess } from '../../../platform/process';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs a process whose start behaves as given; SIGTERM arrives as soon as it has begun. */
async function serveUntilSignal(start: (signal: AbortSignal) => Promise<RunningProcess>) {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line).msg) });
  const before = SIGNALS.map((name) => process.listenerCount(name));
  const served = serve({
    ...{ name: 'worker', logger },
    start: (signal) => {
      const running = start(signal);
      process.emit('SIGTERM');
      return running;
    },
  });
  await served.finally(() => {
    expect(SIGNALS.map((name) => process.listenerCount(name))).toEqual(before);
  });
  return lines;
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

it('ends without an error at a signal during a start that waits', async () => {
  const lines = await serveUntilSignal(untilAborted);
  expect(lines).toEqual(['worker stopped before it was ready']);
});

it('drains a process whose start was done before it could stop', async () => {
  const close = jest.fn(async () => undefined);
  const lines = await serveUntilSignal(async () => ({ url: 'http://127.0.0.1:1', close }));
  expect(close).toHaveBeenCalledTimes(1);
  expect(lines).toEqual(['worker ready', 'worker draining', 'worker stopped']);
});

it('fails with the error of a start that a signal did not end', async () => {
  const wrong = new Error('config_invalid');
  await expect(serveUntilSignal(() => Promise.reject(wrong))).rejects.toBe(wrong);
});
