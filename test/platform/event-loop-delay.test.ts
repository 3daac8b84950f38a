import { watchEventLoopDelay } from '../../platform/event-loop-delay';
import { until } from '../support/until';

it('observes by how much a blocked event loop is late', async () => {
  const seconds: number[] = [];
  const end = watchEventLoopDelay(
    { observe: (late: unknown) => void seconds.push(Number(late)) },
    5,
  );
  await until(() => seconds.length > 0, 5_000, 'a first observation');
  const from = seconds.length;
  const untilMs = performance.now() + 60;
  while (performance.now() < untilMs);
  await until(() => seconds.length > from, 5_000, 'an observation after the block');
  end();
  expect(seconds[from]).toBeGreaterThan(0.05);
  expect(Math.min(...seconds)).toBeGreaterThanOrEqual(0);
});
