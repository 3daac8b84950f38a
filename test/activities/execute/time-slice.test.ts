import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import type { Gate } from './model-server';
import { gate, status } from './model-server';

let world: ChunkWorld;
let slow: Gate;

afterEach(() => world.close());

/** One request at a time, each held until it is released. */
async function open(lines: number): Promise<ChunkWorld> {
  slow = gate();
  const settings = { concurrency: { per_model: 1 } };
  world = await chunkWorld(lines, slow.answer, settings, { gateway: { request_timeout: '60s' } });
  return world;
}

const held = (name: string) => until(() => slow.held()[0] === name, 5_000, `${name} in flight`);
/** A time slice has begun when its first line is in flight. */
const past = (ms: number) => until(() => Date.now() > ms, 5_000, 'the end of the time slice');

it('begins no try after its time slice, and finishes the one in flight', async () => {
  const { run, seen } = await open(5);
  const running = run({ boxMs: 2_000 });
  await held('l0');
  const endMs = Date.now() + 2_000;
  slow.release('l0');
  await held('l1');
  await past(endMs + 100);
  slow.release('l1');
  expect(await running).toMatchObject({ next: 2, completed: 2, left: 'box', stopCause: null });
  expect(seen()).toEqual(['l0', 'l1']);
});

it('goes on past its time slice until the first answer, and no further', async () => {
  const { run, seen } = await open(5);
  const running = run({ boxMs: 50 });
  await held('l0');
  await past(Date.now() + 150);
  slow.release('l0');
  expect(await running).toMatchObject({ next: 1, completed: 1, left: 'box', stopCause: null });
  expect(seen()).toEqual(['l0']);
});

it('retries a line past its time slice while there is no answer', async () => {
  const { run, seen } = await open(1);
  const running = run({ boxMs: 50 });
  await held('l0');
  await past(Date.now() + 150);
  slow.release('l0', status(500));
  await until(() => seen().length === 2, 5_000, 'the second try');
  await held('l0');
  slow.release('l0');
  expect(await running).toMatchObject({ next: 1, completed: 1, left: 'done' });
});
