import { runsKey } from '../../../core/names/object-names';
import { encodeRuns } from '../../../core/plan/runs';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { BATCH_ID, chunkWorld, NONCE } from './chunk-world';
import { gate } from './model-server';

let world: ChunkWorld;
/** Lines that are long enough for leaders. */
const longLines = (count: number) => ({
  bodies: Array.from({ length: count }, (_, i) => ({
    model: 'm',
    n: `l${i}`,
    text: 'x'.repeat(1_024),
  })),
});
afterEach(() => world.close());

describe('a chunk of lines that share prefixes', () => {
  it('sends the first line of each run before followers, and then every line once', async () => {
    const server = gate();
    world = await chunkWorld(6, server.answer, { concurrency: { per_model: 2 } }, longLines(6));
    const runs = encodeRuns(Uint8Array.from([1, 0, 0, 1, 0, 0]));
    await world.store.putIfAbsent(runsKey(BATCH_ID, NONCE, 'm'), runs);
    const result = world.run();
    await until(() => server.held().length === 2, 5_000, 'two requests');
    expect(server.held().sort()).toEqual(['l0', 'l3']);
    server.open();
    expect(await result).toMatchObject({ next: 6, completed: 6, left: 'done' });
    expect(world.seen().sort()).toEqual(['l0', 'l1', 'l2', 'l3', 'l4', 'l5']);
  });

  it('begins with the leader, though permits for all lines are free', async () => {
    const server = gate();
    world = await chunkWorld(3, server.answer, { concurrency: { per_model: 3 } }, longLines(3));
    const runs = encodeRuns(Uint8Array.from([1, 0, 0]));
    await world.store.putIfAbsent(runsKey(BATCH_ID, NONCE, 'm'), runs);
    // The clock stands still, so that followers wait for the answer of the leader only.
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const result = world.run();
    await until(() => server.held().length > 0, 5_000, 'a request');
    expect(server.held()).toEqual(['l0']);
    server.release('l0');
    await until(() => server.held().length === 2, 5_000, 'the followers');
    clock.mockRestore();
    server.open();
    expect(await result).toMatchObject({ completed: 3, left: 'done' });
  });

  it('sends followers 250 ms after their leader, even if it has no answer', async () => {
    const server = gate();
    world = await chunkWorld(3, server.answer, { concurrency: { per_model: 3 } }, longLines(3));
    const runs = encodeRuns(Uint8Array.from([1, 0, 0]));
    await world.store.putIfAbsent(runsKey(BATCH_ID, NONCE, 'm'), runs);
    const result = world.run();
    await until(() => server.held().length === 3, 5_000, 'three requests');
    server.open();
    expect(await result).toMatchObject({ completed: 3, left: 'done' });
  });

  it('sends in plan order if the runs cannot be read', async () => {
    const server = gate();
    world = await chunkWorld(6, server.answer, { concurrency: { per_model: 2 } }, longLines(6));
    await world.store.putIfAbsent(runsKey(BATCH_ID, NONCE, 'm'), Buffer.alloc(0));
    const result = world.run();
    await until(() => server.held().length === 2, 5_000, 'two requests');
    expect(server.held().sort()).toEqual(['l0', 'l1']);
    server.open();
    expect(await result).toMatchObject({ completed: 6, left: 'done' });
  });
});
