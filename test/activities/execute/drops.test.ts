import { ApplicationFailure } from '@temporalio/activity';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../../../activities/contract';
import { FRAME_KIND } from '../../../core/journal/frame';
import type { Answer } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { gate, nameOf, ok, status } from './model-server';

/** Gateways that hold requests in a queue of their own, and give some up unserved. */

let world: ChunkWorld;
afterEach(() => world.close());

const ONE_TRY = {
  ...{ max_retries: 0, request_timeout: '60s' },
  ...{ initial_backoff: '1ms', max_backoff: '10ms' },
};
const EXPIRED = { 'x-llm-d-request-dropped-reason': 'rejected-ttl-expired' };

/** Answers the first `times` tries of each line with `early`, and the others with `late`. */
function after(times: number, early: Answer, late = ok): Answer {
  const seen = new Map<string, number>();
  return (request, response, socket) => {
    const tries = (seen.get(nameOf(request)) ?? 0) + 1;
    seen.set(nameOf(request), tries);
    (tries > times ? late : early)(request, response, socket);
  };
}

function limitNow(): unknown {
  const { deps } = world;
  return deps.dispatcher.limitOf(deps.registry.route('m')!.limiterKey);
}

describe('a request that is given up unserved', () => {
  it.each([
    ['with a drop header', status(503, { 'x-nightshift-dropped': 'Queue_TTL_expired' })],
    ['with a drop header on a status that is not retried', status(404, dropped('internal'))],
    ['with the reason of another gateway and 429', status(429, EXPIRED)],
    ['with the reason of another gateway and 503', status(503, EXPIRED)],
  ])('costs no try %s', async (_, drop) => {
    world = await chunkWorld(4, after(10, drop), {}, { gateway: ONE_TRY });
    expect(await world.run()).toMatchObject({ completed: 4, failed: 0 });
    expect(world.seen()).toHaveLength(44);
    const answers = [...(await world.answers()).values()];
    expect(answers.map(({ kind }) => kind)).toEqual(Array(4).fill(FRAME_KIND.output));
  });

  it('does not use up the tries that its line has left', async () => {
    let tries = 0;
    const replies = [status(500), status(503, dropped('evicted')), status(429, EXPIRED)];
    const answer: Answer = (...args) => (replies[tries++] ?? status(500))(...args);
    world = await chunkWorld(1, answer, {}, { gateway: { ...ONE_TRY, max_retries: 2 } });
    expect(await world.run()).toMatchObject({ completed: 0, failed: 1 });
    expect(tries).toBe(5);
  });

  it('is not sent at or after the deadline', async () => {
    const sentMs: number[] = [];
    world = await chunkWorld(
      2,
      (...args) => {
        sentMs.push(Date.now());
        status(503, { ...dropped('evicted'), 'retry-after': '1' })(...args);
      },
      {},
      { gateway: ONE_TRY },
    );
    const deadlineMs = Date.now() + 1_900;
    expect(await world.run({ deadlineMs })).toMatchObject({ stopCause: 'expired', failed: 0 });
    expect(sentMs).toHaveLength(4);
    expect(Math.max(...sentMs)).toBeLessThan(deadlineMs);
    expect((await world.answers()).size).toBe(0);
  });

  it('stays without an answer if its batch is being cancelled', async () => {
    const server = gate();
    world = await chunkWorld(1, server.answer, {}, { gateway: ONE_TRY });
    const running = world.run();
    await until(() => server.held().length === 1, 5_000, 'a request');
    world.lease.tell({ stopCause: 'cancelled' });
    server.release('l0', status(503, dropped('shutting_down')));
    expect(await running).toMatchObject({ left: 'stopped', answered: 0, failed: 0 });
    expect(world.seen()).toEqual(['l0']);
  });
});

describe('the limit of a model', () => {
  it.each([
    ['insufficient_flow_capacity', { limit: 4, pausedMs: expect.any(Number) }],
    ['queue_ttl_expired', { limit: 8, pausedMs: 0 }],
  ])('after a drop with %s is %j', async (code, expected) => {
    const drop = status(503, { ...dropped(code), 'retry-after': '2' });
    world = await chunkWorld(1, drop, { concurrency: { per_model: 8 } }, { gateway: ONE_TRY });
    await world.run({ boxMs: 300 });
    expect(world.seen()).toEqual(['l0']);
    // A limit that nothing has lowered is not kept.
    expect(limitNow() ?? { limit: 8, pausedMs: 0 }).toMatchObject(expected);
  });
});

describe('a gateway that drops everything for many time slices', () => {
  const SLICE: Partial<ExecuteChunkInput> = { boxMs: 150, mayWait: true, maxDeaths: 3 };

  it('costs no line a try or a frame, and every line is answered when it serves again', async () => {
    let isServing = false;
    const drop = status(503, dropped('queue_ttl_expired'));
    const answer: Answer = (...args) => (isServing ? ok : drop)(...args);
    world = await chunkWorld(30, answer, {}, { gateway: ONE_TRY });
    for (let attempt = 0; attempt < 6; attempt++) {
      const failure = await fruitless(world.run(SLICE));
      expect(failure).toMatchObject({ type: 'box', category: 'BENIGN' });
    }
    expect(world.seen().length).toBeGreaterThan(30);
    expect(await world.retries()).toEqual([]);
    expect(world.deps.registry.route('m')?.breaker).toMatchObject({
      ...{ state: 'closed', failingSinceMs: null, suspect: false },
    });
    isServing = true;
    expect(await world.run()).toMatchObject({ completed: 30, failed: 0, left: 'done' });
  });

  it('ends an overdue time slice with its first drop, and sends nothing more', async () => {
    const server = gate();
    const settings = { concurrency: { per_model: 2 } };
    world = await chunkWorld(5, server.answer, settings, {
      gateway: ONE_TRY,
    });
    const running = fruitless(world.run({ ...SLICE, boxMs: 100 }));
    await until(() => server.held().length === 2, 5_000, 'held requests');
    // The slice began before the first request was sent.
    const endMs = Date.now() + 100;
    await until(() => Date.now() > endMs + 50, 5_000, 'the end of the time slice');
    for (const name of server.held()) server.release(name, status(503, dropped('evicted')));
    expect(await running).toMatchObject({ type: 'box' });
    expect(world.seen()).toHaveLength(2);
  });
});

describe('the time that a request was held in a queue', () => {
  const held: Answer = (request, response, socket) => {
    response.setHeader('server-timing', 'db;dur=1, queue;dur=150');
    setTimeout(() => ok(request, response, socket), 200);
  };

  /** Runs the chunk. Returns the longest time that a request can have taken without its queue, ms. */
  async function run(): Promise<{ result: ExecuteChunkResult; longestMs: number }> {
    const startedMs = performance.now();
    const result = await world.run();
    return { result, longestMs: performance.now() - startedMs - 150 };
  }

  it('is not part of the answer times that size time slices', async () => {
    world = await chunkWorld(2, held);
    const { result, longestMs } = await run();
    expect(result.p95Ms).toBeGreaterThan(40);
    expect(result.p95Ms).toBeLessThan(longestMs);
  });

  it('is reported apart, and a drop has no time at the model server at all', async () => {
    const events: string[] = [];
    let servedMs: number | null = null;
    const answer = after(1, status(503, dropped('evicted')), held);
    world = await chunkWorld(
      1,
      answer,
      {},
      {
        gateway: ONE_TRY,
        replace: ({ observer }) => ({
          observer: {
            ...observer,
            requestEnded: (_, ms) => {
              servedMs = ms;
              events.push(ms === null ? 'unserved' : 'served');
            },
            requestQueued: (_, ms) => void events.push(`queued ${ms} ms`),
            requestDropped: (model, code) => void events.push(`${model} ${code}`),
          },
        }),
      },
    );
    const { longestMs } = await run();
    expect(events).toEqual(['unserved', 'm evicted', 'served', 'queued 150 ms']);
    expect(servedMs).toBeGreaterThan(40);
    expect(servedMs).toBeLessThan(longestMs);
  });
});

function dropped(code: string): Record<string, string> {
  return { 'x-nightshift-dropped': code };
}

/** The failure with which a chunk waits at the server. */
async function fruitless(run: Promise<ExecuteChunkResult>): Promise<ApplicationFailure> {
  const end: unknown = await run.catch((error: unknown) => error);
  if (end instanceof ApplicationFailure) return end;
  throw new Error(`the attempt returned ${JSON.stringify(end)}`);
}
