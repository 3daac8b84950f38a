import { measureCapacity } from '../../../../cli/stack/flow-scene/measure-capacity';
import { runArm } from '../../../../cli/stack/flow-scene/run-arm';
import { ARMS } from '../../../../cli/stack/flow-scene/scene-plan';
import { startSimulator, type Simulator } from '../../../../simulator/main';

const DURATION_MS = 1_500;
const signal = new AbortController().signal;
let engines: Simulator[] = [];

beforeAll(async () => {
  const engine = { port: 0, slots: 8, stepBaseMs: 5, outputTokens: 4 };
  engines = await Promise.all([startSimulator(engine), startSimulator(engine)]);
});
afterAll(() => Promise.all(engines.map((engine) => engine.close())));

function servers() {
  const urls = engines.map(({ url }) => url);
  const stop = () => Promise.resolve();
  // An engine stands for the gateway: the token of a worker means nothing to it.
  const gateway = urls[0] ?? '';
  return { engines: urls, gateway, observability: '', workerToken: 'secret', pids: [], stop };
}

it('measures how many requests the engines answer per second', async () => {
  const capacity = await measureCapacity(servers(), 1_000, signal);
  // 16 slots and four steps of 5 ms for each answer: no machine gives more. A busy one gives much less.
  expect(capacity).toBeLessThan(1_000);
  expect(capacity).toBeGreaterThan(10);
});

it('has no capacity for engines that do not answer', async () => {
  const dead = { ...servers(), engines: ['http://127.0.0.1:1'] };
  expect(await measureCapacity(dead, 50, signal)).toBe(0);
});

it.each(ARMS)('runs an arm of the scene: $name', async (arm) => {
  let shown = 0;
  const record = await runArm({
    ...{ arm, servers: servers(), capacity: 60, durationMs: DURATION_MS, signal },
    onAnswer: () => shown++,
  });
  const users = record.answers.filter(({ isUser }) => isUser);
  expect(record.failed).toBe(0);
  expect(users.length).toBeGreaterThan(10);
  expect(record.answers.some(({ isUser }) => !isUser)).toBe(arm.hasBatch);
  for (const { ttftMs, dueMs, endMs } of users) {
    expect(ttftMs).toBeGreaterThan(0);
    expect(endMs).toBeGreaterThanOrEqual(dueMs);
  }
  expect(shown).toBe(record.answers.length);
});
