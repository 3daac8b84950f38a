import type { ExecuteDeps } from '../../../activities/execute/deps';
import type { ExecuteChunkResult } from '../../../activities/contract';
import type { PermitDispatcher } from '../../../inference/permit-dispatcher';
import { createPermitDispatcher } from '../../../inference/permit-dispatcher';
import type { ProgressReporter } from '../../../storage/postgres/progress';
import type { Answer } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld, ChunkWorldOptions } from './chunk-world';
import { chunkWorld, FakeLease } from './chunk-world';
import { gate, ok } from './model-server';

let world: ChunkWorld;
let permits: PermitDispatcher;
let leases: WatchedLease[];
/** Leases that the test has made for later chunks. */
let unused: WatchedLease[];
let chunks: Promise<ExecuteChunkResult>[];

beforeEach(() => {
  leases = [];
  unused = [];
  chunks = [];
});
afterEach(async () => {
  for (const lease of leases) lease.tell({ lost: true });
  await world.close();
});

/** A lease that shows whether its chunk has begun, because the chunk listens to it from then on. */
class WatchedLease extends FakeLease {
  isWatched = false;

  override onChange(listener: () => void): void {
    this.isWatched = true;
    super.onChange(listener);
  }
}

/** A world with its own lease for each chunk, and `perModel` permits. */
async function open(
  lines: number,
  answer: Answer,
  perModel: number,
  gateway?: ChunkWorldOptions['gateway'],
): Promise<ChunkWorld> {
  permits = createPermitDispatcher({
    global: 10,
    perModel,
    onGuardTripped: (error) => {
      throw error;
    },
  });
  const replace = (deps: ExecuteDeps): Partial<ExecuteDeps> => ({
    ...deps,
    dispatcher: permits,
    progress: { begin: async () => unused.shift() ?? newLease() } as unknown as ProgressReporter,
  });
  const options = { replace, ...(gateway && { gateway }) };
  world = await chunkWorld(lines, answer, { concurrency: { per_model: perModel } }, options);
  return world;
}

function newLease(): WatchedLease {
  const lease = new WatchedLease();
  leases.push(lease);
  return lease;
}

function start(over: Parameters<ChunkWorld['run']>[0]): Promise<ExecuteChunkResult> {
  const chunk = world.run(over);
  chunks.push(chunk);
  return chunk;
}

describe('a line that waits for its permit', () => {
  it('lets a suspect line go first that has requested an exclusive send meanwhile', async () => {
    const slow = gate();
    await open(4, slow.answer, 2);
    const ordinary = start({ from: 0, to: 3 });
    await until(() => slow.held().length === 2, 5_000, 'two in flight');
    await until(() => permits.stats().waiting === 1, 5_000, 'the third to wait');
    const suspect = start({ from: 3, to: 4, solo: true });
    await until(() => leases[1]?.isWatched, 5_000, 'the suspect to begin');
    slow.release('l0');
    // If the waiting line did not check again, it would be sent now, with the permit of the first one.
    await until(() => permits.stats().inFlight === 1, 5_000, 'its permit back');
    slow.release('l1');
    await until(() => slow.held().length > 0, 5_000, 'the next');
    expect(slow.held()).toEqual(['l3']);
    slow.open();
    expect(await suspect).toMatchObject({ completed: 1 });
    expect(await ordinary).toMatchObject({ next: 3, completed: 3 });
    expect(world.seen().slice(2)).toEqual(['l3', 'l2']);
  });

  it('gives the permit back if it is granted at the moment the chunk exits', async () => {
    const { deps } = await open(2, ok, 1);
    const model = deps.registry.route('m')?.limiterKey ?? '';
    const held = permits.tryAcquire({ tenant: 't', batch: 'b', model });
    const chunk = start({});
    await until(() => permits.stats().waiting === 1, 5_000, 'a line to wait');
    held?.release();
    world.drain.abort();
    expect(await chunk).toMatchObject({ next: 0, left: 'drain' });
    expect(world.seen()).toEqual([]);
    expect(permits.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it('keeps its tries when the chunk exits meanwhile', async () => {
    const slow = gate();
    await open(2, slow.answer, 1);
    const chunk = start({});
    await until(() => slow.held().length === 1, 5_000, 'one in flight');
    slow.release('l0', (_request, response) => response.writeHead(500).end());
    await until(() => slow.held()[0] === 'l1', 5_000, 'the other in flight');
    await until(() => permits.stats().waiting === 1, 5_000, 'the first to wait again');
    world.drain.abort();
    slow.release('l1');
    expect(await chunk).toMatchObject({ next: 0, left: 'drain' });
    expect(await world.retries()).toMatchObject([{ line: 0, tries: 1 }]);
  });
});

describe('a process that may have been frozen', () => {
  it('takes no permit that other processes or chunks could use', async () => {
    await open(2, ok, 1);
    let [asked, taken] = [0, 0];
    const acquire = permits.tryAcquire.bind(permits);
    permits.tryAcquire = (request) => {
      // Ends the test if the chunk takes permits in a loop that never yields.
      if (++taken > 100) lease.frozen = false;
      return acquire(request);
    };
    const lease = newLease();
    unused.push(lease);
    lease.maySend = () => {
      asked++;
      return !lease.frozen;
    };
    lease.frozen = true;
    const chunk = start({});
    await until(() => asked >= 3, 5_000, 'the chunk to ask again and again');
    expect(taken).toBe(0);
    lease.frozen = false;
    expect(await chunk).toMatchObject({ next: 2, completed: 2 });
  });
});

describe('permits and reserved memory', () => {
  it('are all given back for every outcome of a request', async () => {
    let asked = 0;
    await open(
      30,
      (request, response, socket) => {
        asked++;
        if (asked % 5 === 0) socket.destroy();
        else if (asked % 5 === 1) response.writeHead(500).end();
        else if (asked % 5 === 2) response.writeHead(400).end();
        else ok(request, response, socket);
      },
      3,
    );
    expect(await start({})).toMatchObject({ next: 30, left: 'done' });
    expect(permits.stats()).toMatchObject({ inFlight: 0, waiting: 0, guardTripped: false });
    expect(world.deps.memory.stats()).toMatchObject({ usedBytes: 0, waiting: 0 });
    expect(await start({ from: 0, to: 30, solo: true })).toMatchObject({ next: 30, answered: 0 });
  });

  it('are free for others while the breaker holds a line back', async () => {
    const { deps } = await open(6, ok, 3, { initial_backoff: '5ms', max_backoff: '20ms' });
    const { breaker } = deps.registry.route('m') ?? {};
    // The breaker is closed when the loop checks it, and open when the permit is granted.
    const acquire = permits.tryAcquire.bind(permits);
    let isFirst = true;
    permits.tryAcquire = (request) => {
      const permit = acquire(request);
      if (isFirst) for (let i = 0; i < 5; i++) breaker?.onFailure(failure(i));
      isFirst = false;
      return permit;
    };
    expect(await start({})).toMatchObject({ next: 6, completed: 6 });
    expect(world.seen().sort()).toEqual(['l0', 'l1', 'l2', 'l3', 'l4', 'l5']);
    expect(permits.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });
});

function failure(index: number) {
  const nowMs = Date.now() - (index === 0 ? 20_000 : 0);
  return { lineId: `other-${index}`, kind: 503, nowMs } as const;
}
