import { setImmediate as turn } from 'node:timers/promises';
import type { ExecuteChunkInput } from '../../../activities/contract';
import type { Chunk } from '../../../activities/execute/chunk';
import { OpeningOrder, type Opened } from '../../../activities/execute/opening-order';
import { NightshiftError } from '../../../core/errors';
import { planKey } from '../../../core/names/object-names';
import type { ObjectReader } from '../../../storage/object-store';
import { readerOf } from '../../support/reader-of';
import { until } from '../../support/until';
import { BATCH_ID, chunkWorld, INPUT_KEY, NONCE, type ChunkWorld } from './chunk-world';
import { gate, ok } from './model-server';

/** Chunks that wait so long wait for the first one only. */
const HOUR_MS = 3_600_000;
let over: AbortController;
beforeEach(() => (over = new AbortController()));
afterEach(() => over.abort());

function chunk(batchId: string, safeModel = 'm'): Chunk {
  return { batchId, safeModel } as Chunk;
}

/** The chunks that may open, in their order. */
async function entering(order: OpeningOrder, chunks: Record<string, Chunk>) {
  const opened = new Map<string, Opened>();
  const all = Object.entries(chunks).map(async ([name, one]) => {
    opened.set(name, await order.enter(one, over.signal));
  });
  for (let turns = 0; turns < 5; turns++) await turn();
  return { opened, all: Promise.all(all) };
}

describe('the order of opening', () => {
  it('lets the others of a model of a batch open when the first one sends', async () => {
    const { opened, all } = await entering(new OpeningOrder(HOUR_MS), {
      ...{ first: chunk('a'), second: chunk('a'), third: chunk('a') },
    });
    expect([...opened.keys()]).toEqual(['first']);
    opened.get('first')?.();
    await all;
    expect([...opened.keys()]).toEqual(['first', 'second', 'third']);
  });

  it('keeps no chunk of another batch or model waiting', async () => {
    const { opened } = await entering(new OpeningOrder(HOUR_MS), {
      ...{ one: chunk('a'), other: chunk('b'), model: chunk('a', 'n') },
    });
    expect([...opened.keys()]).toEqual(['one', 'other', 'model']);
  });

  it('lets them open after 50 ms if the first one does not get on', async () => {
    const startedMs = performance.now();
    const { opened, all } = await entering(new OpeningOrder(), { a: chunk('a'), b: chunk('a') });
    await all;
    expect([...opened.keys()]).toEqual(['a', 'b']);
    // Timers may fire a millisecond early.
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(49);
  });

  it('lets a chunk go on whose signal aborts', async () => {
    const order = new OpeningOrder(HOUR_MS);
    await order.enter(chunk('a'), over.signal);
    await order.enter(chunk('a'), AbortSignal.abort());
  });

  it('begins anew when the first one has sent', async () => {
    const order = new OpeningOrder(HOUR_MS);
    const sends = await order.enter(chunk('a'), over.signal);
    sends();
    const { opened } = await entering(order, { next: chunk('a'), last: chunk('a') });
    expect([...opened.keys()]).toEqual(['next']);
    // The first one ends. That changes nothing.
    sends();
    await turn();
    expect([...opened.keys()]).toEqual(['next']);
  });
});

describe('chunks of a batch that begin at once', () => {
  let world: ChunkWorld;
  afterEach(async () => {
    jest.restoreAllMocks();
    await world.close();
  });

  /** Counts the inputs that chunks open and close. */
  async function counted(lines: number, answer: Parameters<typeof chunkWorld>[1]) {
    world = await chunkWorld(lines, answer);
    const input = { opened: 0, closed: 0 };
    const open = world.store.open.bind(world.store);
    world.store.open = async (key) => {
      const reader = await open(key);
      if (key !== INPUT_KEY) return reader;
      input.opened++;
      return noteClose(reader, () => input.closed++);
    };
    return input;
  }

  it('say that they send, while their requests wait for answers, and close what they opened', async () => {
    const server = gate();
    const input = await counted(6, server.answer);
    let opened = 0;
    const enter = jest.spyOn(OpeningOrder.prototype, 'enter').mockImplementation(() => {
      return Promise.resolve(() => void opened++);
    });
    const inputs: Partial<ExecuteChunkInput>[] = [0, 2, 4].map((from) => ({ from, to: from + 2 }));
    const chunks = inputs.map((one) => world.run(one));
    await until(() => server.held().length === 6, 5_000, 'the requests of all');
    expect([enter.mock.calls.length, opened]).toEqual([3, 3]);
    server.open();
    for (const result of await Promise.all(chunks)) expect(result).toMatchObject({ completed: 2 });
    expect(input.opened).toBe(3);
    await until(() => input.closed === 3, 5_000, 'the ends of all readers');
  });

  it('close an input that they do not need, because every line has its answer', async () => {
    const input = await counted(2, ok);
    await world.run();
    expect(await world.run()).toMatchObject({ next: 2, answered: 0 });
    expect(input.opened).toBe(2);
    await until(() => input.closed === 2, 5_000, 'the ends of both readers');
  });

  it.each([
    [INPUT_KEY, 'open'],
    [planKey(BATCH_ID, NONCE, 'm'), 'read'],
  ] as const)('read %s again if that failed while they waited for their row', async (key, name) => {
    world = await chunkWorld(2, ok);
    const { store } = world;
    const real = store[name].bind(store) as (...args: unknown[]) => Promise<never>;
    let failures = 0;
    store[name] = (...args: unknown[]): Promise<never> => {
      if (args[0] !== key || failures++ > 0) return real(...args);
      return Promise.reject(new NightshiftError('object_store_failed', 'away'));
    };
    expect(await world.run()).toMatchObject({ completed: 2 });
    expect(failures).toBe(2);
  });

  it('fail if the input is gone', async () => {
    world = await chunkWorld(2, ok);
    await world.store.delete(INPUT_KEY);
    await expect(world.run()).rejects.toThrow('the input object is gone');
  });
});

function noteClose(reader: ObjectReader, onClose: () => void): ObjectReader {
  const close = (): Promise<void> => {
    onClose();
    return reader.close();
  };
  return readerOf({ ...reader, close });
}
