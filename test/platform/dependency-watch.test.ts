import {
  createDependencyGauge,
  watchDependencies,
  type DependencyWatch,
} from '../../platform/dependency-watch';
import { createLogger } from '../../platform/logger';
import { createMetricsRegistry } from '../../platform/metrics';
import { until } from '../support/until';

const EVERY_MS = 5;
const WAIT_MS = 5_000;

let watch: DependencyWatch | null = null;
afterEach(() => watch?.close());

/** Watches a dependency whose answers the test controls, and collects the log messages in `logged`. */
function watched(checkTimeoutMs = 1_000) {
  const registry = createMetricsRegistry('worker');
  const up = createDependencyGauge([registry]);
  const logged: string[] = [];
  const logger = createLogger({ level: 'info', format: 'json' }, 'test');
  const note = (_: object, message?: string): void => void logged.push(message ?? '');
  Object.assign(logger, { warn: note, info: note });
  const world = { calls: 0, inFlight: 0, most: 0, answer: () => Promise.resolve() };
  const temporal = async (): Promise<void> => {
    world.calls++;
    world.most = Math.max(world.most, ++world.inFlight);
    await world.answer().finally(() => world.inFlight--);
  };
  watch = watchDependencies({
    ...{ checks: { temporal }, logger, up },
    ...{ everyMs: EVERY_MS, checkTimeoutMs },
  });
  const value = async (): Promise<number | undefined> => (await up.get()).values[0]?.value;
  return { world, logged, value };
}

describe('the dependency watch', () => {
  it('logs once when a dependency stops answering and once when it answers again', async () => {
    const { world, logged, value } = watched();
    await until(() => world.calls > 2, WAIT_MS, 'some calls');
    expect([logged, await value()]).toEqual([[], 1]);
    world.answer = () => Promise.reject(new Error('connection refused'));
    const before = world.calls;
    await until(() => world.calls > before + 3, WAIT_MS, 'some failures');
    expect([logged, await value()]).toEqual([['temporal does not answer'], 0]);
    world.answer = () => Promise.resolve();
    await until(() => logged.length === 2, WAIT_MS, 'the second message');
    expect([logged[1], await value()]).toEqual(['temporal answers again', 1]);
  });

  it('treats a hanging check as an outage and does not start it again meanwhile', async () => {
    const { world, logged, value } = watched(20);
    let answer: () => void = () => undefined;
    world.answer = () => new Promise((resolve) => (answer = resolve));
    await until(() => logged.length === 1, WAIT_MS, 'a message');
    expect(logged).toEqual(['temporal does not answer']);
    expect([await value(), world.inFlight, world.most]).toEqual([0, 1, 1]);
    world.answer = () => Promise.resolve();
    answer();
    await until(() => logged.length === 2, WAIT_MS, 'the second message');
    expect([await value(), world.most]).toEqual([1, 1]);
  });
});
