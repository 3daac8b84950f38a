import { MockActivityEnvironment } from '@temporalio/testing';
import { NightshiftError } from '../../../core/errors';
import { PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { planKey } from '../../../core/names/object-names';
import type { ExecuteChunkResult } from '../../../activities/contract';
import type { JournalStore, JournalWriter } from '../../../storage/journal/journal-store';
import type { Answer } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld, ChunkWorldOptions } from './chunk-world';
import { BATCH_ID, chunkWorld, INPUT_KEY } from './chunk-world';
import { gate, ok, status } from './model-server';

const MIB = 1024 * 1024;

let world: ChunkWorld;
let running: Promise<ExecuteChunkResult> | null = null;

afterEach(async () => {
  running = null;
  await world.close();
});

async function open(
  lines: number,
  answer: Answer,
  options: ChunkWorldOptions = {},
): Promise<ChunkWorld> {
  return (world = await chunkWorld(lines, answer, {}, options));
}

/** The same journal, whose writers have the given properties instead of their own. */
function showing(journal: JournalStore, shown: Partial<JournalWriter>): JournalStore {
  return {
    openWriter: (scope, range) => {
      const writer = journal.openWriter(scope, range);
      return new Proxy(writer, {
        get: (_, name) => {
          const value = Reflect.get(name in shown ? shown : writer, name) as unknown;
          return typeof value === 'function' ? value.bind(writer) : value;
        },
      });
    },
    scan: (...args) => journal.scan(...args),
    writeSeal: (...args) => journal.writeSeal(...args),
    listSeals: (...args) => journal.listSeals(...args),
    openAnswers: (...args) => journal.openAnswers(...args),
  };
}

describe('a chunk sends nothing', () => {
  it('while more than 32 MiB of answers wait for the disk', async () => {
    let asked = 0;
    let unwritten = 33 * MIB;
    const shown = {
      get unwrittenBytes() {
        asked++;
        return unwritten;
      },
    };
    const { run, tries } = await open(3, ok, {
      replace: ({ journal }) => ({ journal: showing(journal, shown) }),
    });
    running = run();
    await until(() => asked >= 2, 5_000, 'the chunk to look again');
    expect(tries()).toBe(0);
    unwritten = 31 * MIB;
    expect(await running).toMatchObject({ next: 3, completed: 3 });
  });

  it('while the journal cannot be written', async () => {
    let asked = 0;
    let isHealthy = false;
    const shown = {
      get healthy() {
        asked++;
        return isHealthy;
      },
    };
    const { run, tries } = await open(3, ok, {
      replace: ({ journal }) => ({ journal: showing(journal, shown) }),
    });
    running = run();
    await until(() => asked >= 2, 5_000, 'the chunk to look again');
    expect(tries()).toBe(0);
    isHealthy = true;
    expect(await running).toMatchObject({ next: 3, completed: 3 });
  });
});

describe('a chunk that exits', () => {
  it('journals tries and due time of every line in backoff', async () => {
    const busy = new Set(['l0', 'l2']);
    const retryAfter = status(503, { 'retry-after': '60' });
    const { run, drain, retries, seen } = await open(3, (request, response, socket) => {
      const isBusy = busy.delete((JSON.parse(request.body.toString()) as { n: string }).n);
      (isBusy ? retryAfter : ok)(request, response, socket);
    });
    const beganMs = Date.now();
    running = run();
    await until(() => busy.size === 0 && seen().length === 3, 5_000, 'all tried');
    drain.abort();
    expect(await running).toMatchObject({ next: 0, left: 'drain' });
    const [first, third, ...others] = (await retries()).sort((a, b) => a.line - b.line);
    expect(others).toEqual([]);
    for (const [line, retry] of [
      [0, first],
      [2, third],
    ] as const) {
      expect(retry).toMatchObject({ line, tries: 1 });
      expect(retry?.notBeforeMs).toBeGreaterThanOrEqual(beganMs + 60_000);
    }
  });

  it('seals in input order what was sent in another order', async () => {
    const { run, store, offsetOf, journal } = await open(3, ok);
    // A plan is not in input order if it groups requests with the same prefix.
    const plan = await store.read(planKey(BATCH_ID, 'aaaaaaaaaaaaaaaa', 'm'));
    const entries = [0, 1, 2].map((i) => plan.subarray(i * PLAN_ENTRY_BYTES).subarray(0, 16));
    const nonce = 'bbbbbbbbbbbbbbbb';
    const reordered = Buffer.concat([2, 0, 1].map((i) => entries[i] ?? Buffer.alloc(0)));
    await store.putIfAbsent(planKey(BATCH_ID, nonce, 'm'), reordered);
    running = run({ planNonce: nonce });
    expect(await running).toMatchObject({ next: 3, completed: 3 });
    const [seal] = await journal.listSeals(BATCH_ID);
    const offsets = [];
    for await (const frame of journal.scan(
      { batchId: BATCH_ID, safeModel: 'm' },
      { from: 0, to: 3 },
    )) {
      if (frame.objectKey === seal?.key) offsets.push(frame.header.offset);
    }
    expect(offsets).toEqual([0, 1, 2].map(offsetOf));
  });
});

describe('a chunk that fails', () => {
  it('releases its row', async () => {
    const { run, store, lease } = await open(3, ok);
    await store.delete(INPUT_KEY);
    await expect(run()).rejects.toMatchObject({ type: 'input_missing' });
    expect(lease.released).toEqual({ to: 0, completed: 0, failed: 0 });
  });

  it('releases its row with the counts that the journal already answers', async () => {
    const { run, store, lease } = await open(3, ok);
    await run({ to: 2 });
    await store.delete(INPUT_KEY);
    await expect(run()).rejects.toMatchObject({ type: 'input_missing' });
    expect(lease.released).toEqual({ to: 2, completed: 2, failed: 0 });
  });

  it('returns at once when it is cancelled while the object store is away', async () => {
    const env = new MockActivityEnvironment();
    const { run, store, lease } = await open(3, ok);
    let asked = 0;
    store.open = async () => {
      asked++;
      throw new NightshiftError('object_store_failed', 'away');
    };
    const ended = run({}, env).then(
      () => 'ended',
      () => 'failed',
    );
    await until(() => asked > 0, 5_000, 'the store to be asked');
    env.cancel();
    let how: string | null = null;
    void ended.then((value) => (how = value));
    expect(await until(() => how, 5_000, 'the end of the chunk')).toBe('failed');
    expect(lease.released).not.toBeNull();
  });
});

describe('the row of a chunk', () => {
  it('gets the counts while the chunk runs', async () => {
    const slow = gate();
    const { run, lease } = await open(3, slow.answer);
    running = run();
    await until(() => slow.held().length === 3, 5_000, 'all in flight');
    slow.release('l1', status(400));
    slow.release('l2');
    await until(() => lease.followed?.failed === 1, 5_000, 'the failed one to be counted');
    await until(() => lease.followed?.completed === 1, 5_000, 'the other one to be counted');
    slow.open();
    expect(await running).toMatchObject({ completed: 2, failed: 1 });
  });
});

describe('the journal writer of a chunk', () => {
  it.each([
    ['when it ends', async () => undefined],
    ['when it fails', (world: ChunkWorld) => world.store.delete(INPUT_KEY)],
  ])('is closed %s', async (_when, prepare) => {
    let closed = 0;
    const world = await open(3, ok, {
      replace: ({ journal }) => ({
        journal: {
          ...journal,
          openWriter: (scope, range) => {
            const writer = journal.openWriter(scope, range);
            const close = writer.close.bind(writer);
            writer.close = () => {
              closed++;
              return close();
            };
            return writer;
          },
        },
      }),
    });
    await prepare(world);
    await world.run().catch(() => undefined);
    expect(closed).toBe(1);
  });
});

describe('the input reader of a chunk', () => {
  it('is closed when the chunk ends', async () => {
    const { run, store } = await open(3, ok);
    const opened = store.open.bind(store);
    const events: string[] = [];
    store.open = async (key) => {
      const reader = await opened(key);
      if (key !== INPUT_KEY) return reader;
      events.push('opened');
      const close = async (): Promise<void> => {
        events.push('closed');
        await reader.close();
      };
      return { ...reader, close };
    };
    running = run();
    await running;
    expect(events).toEqual(['opened', 'closed']);
  });
});

describe('a chunk attempt', () => {
  it('sends a heartbeat before it takes its row, to find out whether it comes too late', async () => {
    const env = new MockActivityEnvironment();
    const events: string[] = [];
    env.on('heartbeat', () => events.push('heartbeat'));
    const { run } = await open(1, ok, {
      replace: ({ progress }) => ({
        progress: {
          ...progress,
          begin: (...args) => {
            events.push('row');
            return progress.begin(...args);
          },
        },
      }),
    });
    running = run({}, env);
    await running;
    expect(events.slice(0, 2)).toEqual(['heartbeat', 'row']);
  });
});
