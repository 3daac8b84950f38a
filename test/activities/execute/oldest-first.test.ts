import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { gate } from './model-server';

let world: ChunkWorld;
afterEach(() => world.close());

it('lets the older one of two chunks of a batch go first, after one permit for each', async () => {
  const server = gate();
  world = await chunkWorld(8, server.answer, { concurrency: { per_model: 1 } });
  const older = world.run({ from: 0, to: 4 });
  const younger = world.run({ from: 4, to: 8 });
  await until(() => world.waiting() === 2, 5_000, 'both chunks waiting for a permit');
  server.open();
  for (const chunk of await Promise.all([older, younger])) {
    expect(chunk).toMatchObject({ completed: 4, left: 'done' });
  }
  const [first, ...seen] = world.seen();
  // Which one reads its plan first is left open.
  const [old, young] = first === 'l0' ? [0, 4] : [4, 0];
  const lines = [young, old + 1, old + 2, old + 3, young + 1, young + 2, young + 3];
  expect(seen).toEqual(lines.map((line) => `l${line}`));
});
