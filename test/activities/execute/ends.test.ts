import { ActivityCancellationDetails } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ExecuteDeps } from '../../../activities/execute/deps';
import type { ExecuteChunkResult } from '../../../activities/contract';
import type { Answer } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { gate, ok, status } from './model-server';

const HOUR_MS = 3_600_000;
/** Long enough to send two requests on a busy machine. */
const SOON_MS = 2_500;
/** No request ends by itself within a test, so only the tested cause can end it. */
const SLOW = {
  request_timeout: '60s',
  max_retries: 0,
  initial_backoff: '5ms',
  max_backoff: '20ms',
};

let world: ChunkWorld;
let running: Promise<ExecuteChunkResult> | null = null;

afterEach(async () => {
  jest.restoreAllMocks();
  running = null;
  await world.close();
});

async function open(
  lines: number,
  answer: Answer,
  batch: Record<string, unknown> = {},
  replace?: (deps: ExecuteDeps) => Partial<ExecuteDeps>,
): Promise<ChunkWorld> {
  const settings = { batch: { cancel_grace: '60s', ...batch } };
  const options = { gateway: SLOW, ...(replace && { replace }) };
  world = await chunkWorld(lines, answer, settings, options);
  return world;
}

/** Waits for the result of the chunk. If the chunk never ends, the test fails instead of its teardown. */
async function ended(): Promise<ExecuteChunkResult> {
  let result: ExecuteChunkResult | null = null;
  void running?.then((value) => (result = value));
  return until(() => result, 5_000, 'the end of the chunk');
}

/** Moves the clock but no timer, as if the process had been frozen for a moment. */
function jumpBy(ms: number): void {
  const now = Date.now;
  jest.spyOn(Date, 'now').mockImplementation(() => now() + ms);
}

describe('the deadline of a batch', () => {
  it('is checked again after a line has been read', async () => {
    // The deadline passes while the line waits for its memory.
    const { run, seen, tries } = await open(1, ok, { expiry_grace: '60s' }, ({ memory }) => ({
      memory: {
        ...memory,
        stats: () => memory.stats(),
        reserve: (bytes, signal) => memory.reserve(bytes, signal),
        tryReserve: (bytes) => {
          jumpBy(2 * HOUR_MS);
          return memory.tryReserve(bytes);
        },
      },
    }));
    running = run({ deadlineMs: Date.now() + HOUR_MS });
    expect(await ended()).toMatchObject({ next: 0, left: 'stopped', stopCause: 'expired' });
    expect([tries(), seen()]).toEqual([0, []]);
  });

  it('is checked again right before the first byte is sent', async () => {
    const { run, seen, tries } = await open(1, ok, { expiry_grace: '60s' }, ({ registry }) => ({
      registry: {
        ...registry,
        route: (model) => {
          const route = registry.route(model);
          if (route === null) return null;
          const { backend } = route;
          const send: typeof backend.send = (request) => {
            const sent = backend.send(request);
            jumpBy(2 * HOUR_MS);
            return sent;
          };
          return { ...route, backend: { ...backend, send } };
        },
      },
    }));
    running = run({ deadlineMs: Date.now() + HOUR_MS });
    expect(await ended()).toMatchObject({ next: 0, left: 'stopped', stopCause: 'expired' });
    expect([tries(), seen()]).toEqual([1, []]);
  });

  it('aborts requests in flight after the expiry grace, not the cancel grace', async () => {
    const slow = gate();
    const { run, answers } = await open(2, slow.answer);
    running = run({ deadlineMs: Date.now() + SOON_MS });
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    expect(await ended()).toMatchObject({ next: 0, left: 'stopped', stopCause: 'expired' });
    await until(() => slow.dropped().length === 2, 5_000, 'both connections closed');
    expect((await answers()).size).toBe(0);
  });

  it('aborts requests in flight also if the chunk is exiting already', async () => {
    const slow = gate();
    const { run, drain } = await open(2, slow.answer);
    running = run({ deadlineMs: Date.now() + SOON_MS });
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    drain.abort();
    expect(await ended()).toMatchObject({ next: 0, left: 'drain', stopCause: 'expired' });
    await until(() => slow.dropped().length === 2, 5_000, 'both connections closed');
  });

  it('makes a later cancel count as expired', async () => {
    const slow = gate();
    const env = new MockActivityEnvironment();
    const { run } = await open(1, slow.answer);
    running = run({ deadlineMs: Date.now() + HOUR_MS }, env);
    await until(() => slow.held().length === 1, 5_000, 'one in flight');
    jumpBy(2 * HOUR_MS);
    env.cancel('CANCELLED', new ActivityCancellationDetails({ cancelRequested: true }));
    expect(await ended()).toMatchObject({ left: 'stopped', stopCause: 'expired' });
  });
});

describe('a stop of the batch', () => {
  it('drops an outcome that would be retried, even of the last try', async () => {
    const slow = gate();
    const { run, lease, answers } = await open(2, slow.answer);
    running = run();
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    lease.tell({ stopCause: 'cancelled' });
    slow.release('l0', ok);
    slow.release('l1', status(500));
    expect(await ended()).toMatchObject({ next: 1, completed: 1, failed: 0, answered: 1 });
    expect([...(await answers()).keys()]).toEqual([0]);
  });

  it('keeps a chunk that begins afterwards from sending anything', async () => {
    const { run, lease, seen } = await open(3, ok);
    lease.tell({ stopCause: 'cancelled' });
    running = run();
    expect(await ended()).toMatchObject({ next: 0, left: 'stopped', stopCause: 'cancelled' });
    expect(seen()).toEqual([]);
  });

  it('keeps a chunk from sending anything if it comes while the journal is read', async () => {
    const env = new MockActivityEnvironment();
    const { run, seen, store } = await open(3, ok);
    const opened = store.open.bind(store);
    store.open = async (key) => {
      env.cancel('CANCELLED', new ActivityCancellationDetails({ cancelRequested: true }));
      return opened(key);
    };
    running = run({}, env);
    expect(await ended()).toMatchObject({ next: 0, left: 'stopped', stopCause: 'cancelled' });
    expect(seen()).toEqual([]);
  });

  it('lets requests in flight finish if the cause is `failed`', async () => {
    const slow = gate();
    const { run, lease, answers } = await open(2, slow.answer, { cancel_grace: '1ms' });
    running = run();
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    lease.tell({ stopCause: 'failed' });
    // With any other cause this grace would have aborted them when the next timers ran.
    await new Promise((resolve) => setTimeout(resolve, 5));
    slow.open();
    expect(await ended()).toMatchObject({ next: 2, completed: 2, stopCause: 'failed' });
    expect((await answers()).size).toBe(2);
  });
});

describe('the loss of the range of a chunk', () => {
  it.each([
    ['another attempt has it', { lost: true }, 'fenced'],
    ['the batch has ended', { terminal: true }, 'row_terminal'],
  ] as const)('aborts requests in flight because %s', async (_why, change, left) => {
    const slow = gate();
    const { run, lease } = await open(2, slow.answer);
    running = run();
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    lease.tell(change);
    expect(await ended()).toMatchObject({ next: 0, left });
    await until(() => slow.dropped().length === 2, 5_000, 'both connections closed');
  });

  it('prevents the seal and the report of answers even after another exit reason', async () => {
    const slow = gate();
    const { run, lease, drain, journal, answers } = await open(3, slow.answer);
    running = run();
    await until(() => slow.held().length === 3, 5_000, 'all in flight');
    slow.release('l0');
    await until(async () => (await answers()).size === 1, 5_000, 'its answer in the journal');
    drain.abort();
    lease.tell({ lost: true });
    expect(await ended()).toMatchObject({ next: 0, completed: 0, failed: 0, left: 'fenced' });
    expect(await journal.listSeals(`batch_${'5e'.repeat(16)}`)).toEqual([]);
  });

  it('is assumed if the Temporal server no longer knows the attempt', async () => {
    const slow = gate();
    const env = new MockActivityEnvironment();
    const { run } = await open(2, slow.answer);
    running = run({}, env);
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    env.cancel('NOT_FOUND', new ActivityCancellationDetails({ notFound: true }));
    expect(await ended()).toMatchObject({ next: 0, left: 'fenced', stopCause: null });
  });
});

describe('a worker that shuts down', () => {
  it('sends nothing of a chunk that begins during the shutdown', async () => {
    const { run, drain, seen } = await open(3, ok);
    drain.abort();
    running = run();
    expect(await ended()).toMatchObject({ next: 0, left: 'drain', stopCause: null });
    expect(seen()).toEqual([]);
  });

  it('aborts requests in flight when the drain budget is over', async () => {
    const slow = gate();
    const env = new MockActivityEnvironment();
    const { run, drain } = await open(2, slow.answer);
    running = run({}, env);
    await until(() => slow.held().length === 2, 5_000, 'both in flight');
    drain.abort();
    env.cancel('WORKER_SHUTDOWN', new ActivityCancellationDetails({ workerShutdown: true }));
    expect(await ended()).toMatchObject({ next: 0, left: 'drain', stopCause: null });
    await until(() => slow.dropped().length === 2, 5_000, 'both connections closed');
  });
});
