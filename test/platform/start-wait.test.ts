import { pino } from 'pino';
import { createDependencyGauge } from '../../platform/dependency-watch';
import { createMetricsRegistry } from '../../platform/metrics';
import type { StartOptions } from '../../platform/process';
import { StartWait } from '../../platform/start-wait';
import { until } from '../support/until';

const AWAY = new Error('away');
const WRONG = new Error('wrong');

/** A start, what it logs, and what it shows at `/ready` and in `dependency_up`. */
function begin(options: StartOptions = {}) {
  const lines: { level: number; msg: string; err?: { message: string } }[] = [];
  const shown: string[] = [];
  const registry = createMetricsRegistry('worker');
  const wait = new StartWait({
    ...options,
    logger: pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line)) }),
    up: createDependencyGauge([registry]),
    observability: { markStarting: (reason) => void shown.push(reason) },
  });
  const isUp = async () => /^dependency_up\{.*\} (.)$/m.exec(await registry.metrics())?.[1];
  return { wait, lines, shown, isUp };
}

/** A dependency that fails with these errors, one after the other, and then answers. */
function failing(...errors: Error[]) {
  let tries = 0;
  return {
    tries: () => tries,
    name: 'postgres',
    reach: async () => {
      const error = errors[tries++];
      if (error !== undefined) throw error;
      return 'answer';
    },
    isAway: (error: unknown) => error === AWAY,
  };
}

it('waits for a dependency that is away, and says so once in the log, in the metric and at /ready', async () => {
  const { wait, lines, shown, isUp } = begin();
  const dependency = failing(AWAY, AWAY);
  const reached = wait.until(dependency);
  await until(() => lines.length > 0, 5_000, 'the first failure');
  expect(shown).toEqual(['waiting for postgres']);
  expect(await isUp()).toBe('0');
  expect(await reached).toBe('answer');
  expect(await isUp()).toBe('1');
  expect(dependency.tries()).toBe(3);
  expect(lines).toMatchObject([
    { msg: 'postgres does not answer yet, waiting up to 300 s', err: { message: 'away' } },
    { msg: 'postgres answers', awayMs: expect.any(Number) },
  ]);
});

it('logs nothing if a dependency answers at once', async () => {
  const { wait, lines } = begin();
  await wait.until(failing());
  expect(lines).toEqual([]);
});

it('gives up at once after an error that waiting cannot mend', async () => {
  const dependency = failing(WRONG);
  await expect(begin().wait.until(dependency)).rejects.toBe(WRONG);
  expect(dependency.tries()).toBe(1);
});

it('waits for all dependencies together no longer than the limit', async () => {
  const { wait } = begin({ startWaitMs: 200 });
  const first = failing(AWAY);
  expect(await wait.until(first)).toBe('answer');
  // The pause after the first failure was longer than the limit, so none is left.
  const second = failing(AWAY);
  await expect(wait.until(second)).rejects.toBe(AWAY);
  expect(second.tries()).toBe(1);
});

it('gives up at once at a signal, also while an attempt hangs, and reaches nothing afterwards', async () => {
  const stop = new AbortController();
  const { wait } = begin({ signal: stop.signal });
  const hanging = { ...failing(), reach: () => new Promise<string>(() => undefined) };
  const reached = wait.until(hanging);
  stop.abort(new Error('SIGTERM'));
  await expect(reached).rejects.toThrow('SIGTERM');
  const next = failing();
  await expect(wait.until(next)).rejects.toThrow('SIGTERM');
  expect(next.tries()).toBe(0);
});
