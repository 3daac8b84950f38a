import { until } from '../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { holdLongTimers, type LongTimers } from './long-timers';
import type { Gate } from './model-server';
import { gate, status } from './model-server';

/** As long as no deadline is: its timer is told from others by it. */
const BOX_MS = 20 * 60_000;

let world: ChunkWorld;
let slow: Gate;
let timers: LongTimers;

beforeEach(() => {
  timers = holdLongTimers();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await world.close();
});

/** One request at a time, each held until it is released. */
async function open(lines: number): Promise<ChunkWorld> {
  slow = gate();
  const settings = { concurrency: { per_model: 1 } };
  world = await chunkWorld(lines, slow.answer, settings, { gateway: { request_timeout: '60s' } });
  return world;
}

const held = (name: string) => until(() => slow.held()[0] === name, 5_000, `${name} in flight`);

it('begins no try after its box, and finishes the one in flight', async () => {
  const { run, seen } = await open(5);
  const running = run({ boxMs: BOX_MS });
  await held('l0');
  slow.release('l0');
  await held('l1');
  timers.fire(BOX_MS);
  slow.release('l1');
  expect(await running).toMatchObject({ next: 2, completed: 2, left: 'box', stopCause: null });
  expect(seen()).toEqual(['l0', 'l1']);
});

it('goes on past its box until the first answer has come, and no further', async () => {
  const { run, seen } = await open(5);
  const running = run({ boxMs: BOX_MS });
  await held('l0');
  timers.fire(BOX_MS);
  slow.release('l0');
  expect(await running).toMatchObject({ next: 1, completed: 1, left: 'box', stopCause: null });
  expect(seen()).toEqual(['l0']);
});

it('lets a line that was busy be tried again past its box while no answer has come', async () => {
  const { run } = await open(1);
  const running = run({ boxMs: BOX_MS });
  await held('l0');
  timers.fire(BOX_MS);
  slow.release('l0', status(500));
  await held('l0');
  slow.release('l0');
  expect(await running).toMatchObject({ next: 1, completed: 1, left: 'done' });
});
