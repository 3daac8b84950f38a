import type { ExecuteChunkResult } from '../../../activities/contract';
import { NightshiftError } from '../../../core/errors';
import { lineId } from '../../../core/names/ids';
import { runsKey } from '../../../core/names/object-names';
import { encodeRuns } from '../../../core/plan/runs';
import type { BackendOutcome, BackendRequest } from '../../../inference/backend';
import type { Registry } from '../../../inference/registry';
import type { Answer } from '../../inference/local-server';
import { endingWith } from '../../support/promises-of-sending';
import { readerOf } from '../../support/reader-of';
import { until } from '../../support/until';
import type { ChunkWorld, ChunkWorldOptions } from './chunk-world';
import { BATCH_ID, chunkWorld, INPUT_KEY, NONCE } from './chunk-world';
import { nameOf, ok, status } from './model-server';

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

/** The breaker of the world's gateway, open, with its first probe due. */
function openBreaker({ deps }: ChunkWorld) {
  const breaker = deps.registry.route('m')?.breaker;
  if (breaker === undefined) throw new Error('no route');
  for (let i = 0; i < 5; i++) {
    const nowMs = Date.now() - (i === 0 ? 20_000 : 1_000);
    breaker.onFailure({ lineId: `other-${i}`, kind: 503, nowMs });
  }
  expect(breaker.state).toBe('open');
  return breaker;
}

/** Waits for the result of the chunk. If a probe blocks the chunk, the test fails instead of hanging. */
async function ended(): Promise<ExecuteChunkResult> {
  let result: ExecuteChunkResult | null = null;
  void running?.then((value) => (result = value));
  return until(() => result, 5_000, 'the end of the chunk');
}

describe('a probe that shows nothing about its gateway', () => {
  it('is followed by another one if its line could not be read', async () => {
    const world = await open(2, ok);
    const { run, store } = world;
    const opened = store.open.bind(store);
    let failures = 1;
    store.open = async (key) => {
      const input = await opened(key);
      if (key !== INPUT_KEY) return input;
      const read: typeof input.read = (...range) =>
        failures-- > 0
          ? Promise.reject(new NightshiftError('object_store_failed', 'read: EIO'))
          : input.read(...range);
      return readerOf({ ...input, read });
    };
    const breaker = openBreaker(world);
    running = run();
    expect(await ended()).toMatchObject({ next: 2, completed: 2 });
    expect(breaker.state).toBe('closed');
  });

  it('is followed by another one if its lease did not allow it to be sent', async () => {
    const world = await open(2, ok);
    const { run, lease } = world;
    let refused = 0;
    // True for the check in the loop, false for the one after the line is read.
    lease.maySend = () => ++refused !== 2;
    openBreaker(world);
    running = run();
    expect(await ended()).toMatchObject({ next: 2, completed: 2 });
  });

  it('is followed by another one if its lease did not allow it after the connection was made', async () => {
    const world = await open(2, ok);
    const { run, lease, tries } = world;
    lease.maySend = () => tries() !== 1 || ++refusedSent > 1;
    let refusedSent = 0;
    openBreaker(world);
    running = run();
    expect(await ended()).toMatchObject({ next: 2, completed: 2 });
  });
});

describe('a request line', () => {
  it('has an id from its byte offset, in the request and in the result', async () => {
    const { run, server, answers, offsetOf } = await open(3, (request, response, socket) =>
      (request.body.includes('l2') ? status(400) : ok)(request, response, socket),
    );
    running = run();
    await running;
    const all = await answers();
    for (const line of [0, 1, 2]) {
      const id = lineId(BATCH_ID, offsetOf(line));
      const sent = server.received.find(({ body }) => body.includes(`l${line}`));
      expect(sent?.headers['x-request-id']).toBe(id);
      expect(all.get(line)?.line).toMatchObject({ id, custom_id: `l${line}` });
    }
  });

  it('stays unanswered if its next try would come after the deadline', async () => {
    const { run, answers } = await open(1, status(500, { 'retry-after': '200' }));
    running = run({ deadlineMs: Date.now() + 1_000 });
    expect(await ended()).toMatchObject({ next: 0, failed: 0, stopCause: 'expired' });
    expect((await answers()).size).toBe(0);
  });

  it('tells its gateway the time left for the batch, not for the chunk', async () => {
    const { run, server } = await open(1, ok);
    running = run({ deadlineMs: Date.now() + 3_600_000, boxMs: 5_000 });
    await running;
    expect(Number(server.received[0]?.headers['x-slo-ttft-ms'])).toBeGreaterThan(3_500_000);
  });

  it.each([
    [false, undefined, undefined],
    [true, 'default', '4'],
  ])(
    'names its tenant and priority only to a gateway that is configured for it: %s',
    async (isTold, tenant, priority) => {
      const { run, server } = await open(1, ok, { gateway: { send_fairness_header: isTold } });
      running = run({ priority: 4 });
      await running;
      expect(server.received[0]?.headers['x-gateway-inference-fairness-id']).toBe(tenant);
      expect(server.received[0]?.headers['x-nightshift-priority']).toBe(priority);
      expect(server.received[0]?.headers['x-nightshift-prefix']).toBeUndefined();
    },
  );

  it('names the group of lines that share its prefix, if there are others', async () => {
    const { run, server, store } = await open(6, ok, { gateway: { send_fairness_header: true } });
    const runs = encodeRuns(Uint8Array.from([1, 0, 0, 1, 0, 2]));
    await store.putIfAbsent(runsKey(BATCH_ID, NONCE, 'm'), runs);
    running = run();
    await running;
    const groups = new Map(
      server.received.map((sent) => [nameOf(sent), sent.headers['x-nightshift-prefix']]),
    );
    const [first, second] = [groups.get('l0'), groups.get('l3')];
    expect(first).toMatch(/^[0-9a-f]{8}$/);
    expect(second).toMatch(/^[0-9a-f]{8}$/);
    expect(second).not.toBe(first);
    const inOrder = [0, 1, 2, 3, 4, 5].map((line) => groups.get(`l${line}`));
    expect(inOrder).toEqual([first, first, first, second, second, undefined]);
  });
});

/** A registry whose backend the test plays. */
function played(registry: Registry, end: (request: BackendRequest) => BackendOutcome) {
  return {
    ...registry,
    route: (model: string) => {
      const route = registry.route(model);
      return route && { ...route, backend: { ...route.backend, send: endingWith(end) } };
    },
  };
}

function fail(reason: 'timeout' | 'connection'): BackendOutcome {
  return { kind: 'failure', reason, message: 'for the test' };
}

describe('a line that is still read when requests in flight are aborted', () => {
  it('is not sent', async () => {
    const world = await open(1, ok);
    const { run, store, lease } = world;
    const opened = store.open.bind(store);
    const reads: (() => void)[] = [];
    store.open = async (key) => {
      const input = await opened(key);
      if (key !== INPUT_KEY) return input;
      const read: typeof input.read = async (...range) => {
        await new Promise<void>((resolve) => reads.push(resolve));
        return input.read(...range);
      };
      return readerOf({ ...input, read });
    };
    running = run();
    await until(() => reads.length === 1, 5_000, 'the read');
    lease.maySend = () => true;
    lease.tell({ lost: true });
    reads[0]?.();
    expect(await ended()).toMatchObject({ next: 0, left: 'fenced' });
    expect([world.tries(), world.seen()]).toEqual([0, []]);
  });
});

describe('tries that end before their send returns', () => {
  it('are as many as the chunk has lines, without a stack as deep', async () => {
    const send = (): BackendOutcome => fail('timeout');
    const { run } = await open(10_000, ok, {
      replace: ({ registry }) => ({ registry: played(registry, send) }),
      gateway: { max_retries: 0 },
    });
    running = run();
    await running;
    expect(await running).toMatchObject({ next: 10_000, failed: 10_000 });
  });
});

describe('the bytes of a request', () => {
  it('are not reused after a try without an answer, because the connection may still read them', async () => {
    const sent: { body: Uint8Array; text: string }[] = [];
    const { run } = await open(20, ok, {
      replace: ({ registry }) => ({
        registry: played(registry, ({ body: content }) => {
          const body = content as Uint8Array;
          sent.push({ body, text: Buffer.from(body).toString() });
          return fail(sent.length % 2 === 0 ? 'timeout' : 'connection');
        }),
      }),
    });
    running = run();
    expect(await ended()).toMatchObject({ next: 20, failed: 20 });
    for (const { body, text } of sent) expect(Buffer.from(body).toString()).toBe(text);
  });

  it('count against the memory budget of the process, and so do the bytes of its answer', async () => {
    const grown: number[] = [];
    const { run } = await open(1, ok, {
      replace: ({ memory, registry }) => ({
        memory: {
          reserve: (...args) => memory.reserve(...args),
          stats: () => memory.stats(),
          tryReserve: (bytes) => {
            const reservation = memory.tryReserve(bytes);
            return (
              reservation && {
                release: () => reservation.release(),
                grow: (more) => {
                  grown.push(more);
                  return reservation.grow(more);
                },
              }
            );
          },
        },
        registry,
      }),
    });
    running = run();
    await running;
    expect(grown.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(50);
  });
});
