import { crc32 } from 'node:zlib';
import { ActivityCancellationDetails } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { encodeRetryFrame, retryHeader } from '../../../core/journal/frame';
import type { Answer } from '../../inference/local-server';
import { startLocalServer } from '../../inference/local-server';
import { readerOf } from '../../support/reader-of';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { NightshiftError } from '../../../core/errors';
import { planKey } from '../../../core/names/object-names';
import { chunkWorld, BATCH_ID, INPUT_KEY, NONCE } from './chunk-world';
import { gate, nameOf, ok } from './model-server';

let world: ChunkWorld | null = null;
afterEach(async () => {
  await world?.close();
  world = null;
});

async function open(lines: number, answer: Answer, settings?: Record<string, unknown>) {
  return (world = await chunkWorld(lines, answer, settings));
}

describe('executeChunk', () => {
  it('sends the exact bytes of every body once, and journals and seals every answer', async () => {
    const { run, server, answers, journal, lease } = await open(25, ok);
    const result = await run();
    expect(result).toMatchObject({
      next: 25,
      completed: 25,
      failed: 0,
      answered: 25,
      left: 'done',
    });
    expect(server.received.map(({ body }) => body.toString()).sort()).toEqual(
      Array.from({ length: 25 }, (_, i) => `{"model":"m", "n":"l${i}"}`).sort(),
    );
    const all = await answers();
    expect(all.size).toBe(25);
    expect(all.get(7)?.line).toMatchObject({
      custom_id: 'l7',
      response: { status_code: 200, body: { echo: 'l7' } },
    });
    const seals = await journal.listSeals(`batch_${'5e'.repeat(16)}`);
    expect(seals.map((seal) => seal.range)).toEqual([{ from: 0, to: 25 }]);
    expect(lease.released).toEqual({ to: 25, completed: 25, failed: 0 });
  });

  it('sends no line that the journal already answers', async () => {
    const { run, seen } = await open(10, ok);
    await run({ to: 6 });
    const again = await run({ from: 0, to: 10 });
    expect(again).toMatchObject({ next: 10, completed: 10, answered: 4 });
    expect(seen()).toHaveLength(10);
  });

  it('retries failures that may pass, keeps other answers, and counts the last answer of a line', async () => {
    const tries = new Map<string, number>();
    const { run, answers } = await open(3, (request, response, socket) => {
      const name = nameOf(request);
      tries.set(name, (tries.get(name) ?? 0) + 1);
      if (name === 'l0' && tries.get(name) === 1) response.writeHead(429).end('{"error":{}}');
      else if (name === 'l1') response.writeHead(400).end('{"error":{"message":"no"}}');
      else if (name === 'l2') response.writeHead(500).end('broken');
      else ok(request, response, socket);
    });
    expect(await run()).toMatchObject({ next: 3, completed: 1, failed: 2 });
    expect(Object.fromEntries(tries)).toEqual({ l0: 2, l1: 1, l2: 3 });
    const all = await answers();
    expect(all.get(1)?.line).toMatchObject({ response: { status_code: 400 }, error: null });
    expect(all.get(2)?.line.response).toMatchObject({
      status_code: 500,
      body: { error: { code: 'invalid_response', message: 'broken' } },
    });
  });

  it('ends a line with an error code when there is no HTTP answer', async () => {
    const { run, answers } = await open(1, (_request, _response, socket) => socket.destroy());
    expect(await run()).toMatchObject({ next: 1, failed: 1 });
    expect((await answers()).get(0)?.line).toMatchObject({
      response: null,
      error: { code: 'connection_error' },
    });
  });

  it('begins no try after its time slice, finishes requests in flight, and returns its position', async () => {
    const slow = gate();
    const { run, seen } = await open(30, slow.answer, { concurrency: { per_model: 3 } });
    const running = run({ boxMs: 150 });
    await until(() => slow.held().length === 3, 5_000, 'three in flight');
    // There is no answer yet, so the time slice lasts until the first one.
    slow.open();
    const result = await running;
    expect(result.next).toBeGreaterThanOrEqual(3);
    expect(result.answered).toBe(seen().length);
  });

  it('journals answers to requests in flight at a shutdown, and sends no other line', async () => {
    const slow = gate();
    const { run, drain, seen, answers } = await open(30, slow.answer, {
      concurrency: { per_model: 3 },
    });
    const running = run();
    await until(() => slow.held().length === 3, 5_000, 'three in flight');
    drain.abort();
    slow.open();
    expect(await running).toMatchObject({ next: 3, completed: 3, left: 'drain' });
    expect(seen()).toHaveLength(3);
    expect((await answers()).size).toBe(3);
  });

  it('lets requests in flight finish within the cancel grace, and retries nothing', async () => {
    const slow = gate();
    const env = new MockActivityEnvironment();
    const { run, lease, seen } = await open(30, slow.answer, { concurrency: { per_model: 2 } });
    const running = run({}, env);
    await until(() => slow.held().length === 2, 5_000, 'two in flight');
    lease.tell({ stopCause: 'cancelled' });
    slow.open();
    expect(await running).toMatchObject({ next: 2, left: 'stopped', stopCause: 'cancelled' });
    expect(seen()).toHaveLength(2);
  });

  it('aborts requests still in flight after the grace, and journals no answer for them', async () => {
    const slow = gate();
    const env = new MockActivityEnvironment();
    const { run, answers } = await open(5, slow.answer, { batch: { cancel_grace: '50ms' } });
    const running = run({}, env);
    await until(() => slow.held().length === 5, 5_000, 'all in flight');
    env.cancel('CANCELLED', new ActivityCancellationDetails({ cancelRequested: true }));
    expect(await running).toMatchObject({
      next: 0,
      answered: 0,
      left: 'stopped',
      stopCause: 'cancelled',
    });
    expect((await answers()).size).toBe(0);
  });

  it('sends nothing after the deadline, even without a cancel', async () => {
    const { run, seen } = await open(5, ok);
    expect(await run({ deadlineMs: Date.now() - 1 })).toMatchObject({
      next: 0,
      stopCause: 'expired',
    });
    expect(seen()).toEqual([]);
  });

  it('exits without a seal when another attempt holds its range', async () => {
    const slow = gate();
    const { run, lease, journal } = await open(5, slow.answer);
    const running = run();
    await until(() => slow.held().length > 0, 5_000, 'something in flight');
    lease.tell({ lost: true });
    expect(await running).toMatchObject({ next: 0, completed: 0, left: 'fenced' });
    expect(await journal.listSeals(`batch_${'5e'.repeat(16)}`)).toEqual([]);
  });

  it('sends nothing while its process may have been frozen', async () => {
    const { run, lease, seen } = await open(3, ok);
    let asked = 0;
    lease.maySend = () => {
      // Ends the test if the chunk asks in a loop that never yields.
      return ++asked > 1_000 || !lease.frozen;
    };
    lease.frozen = true;
    const running = run();
    await until(() => asked >= 3, 5_000, 'the chunk to ask again and again');
    expect(seen()).toEqual([]);
    lease.frozen = false;
    expect(await running).toMatchObject({ next: 3 });
  });

  it('gives its lines back without a seal if its lease is not confirmed long after a freeze', async () => {
    const slow = gate();
    const { run, lease, journal, answers } = await open(5, slow.answer, {
      concurrency: { per_model: 1 },
    });
    const running = run();
    await until(() => slow.held().length === 1, 5_000, 'a request in flight');
    Object.assign(lease, { frozen: true, unconfirmed: true });
    slow.open();
    expect(await running).toMatchObject({ next: 0, completed: 0, answered: 1, left: 'unheard' });
    expect((await answers()).size).toBe(1);
    expect(await journal.listSeals(BATCH_ID)).toEqual([]);
  });

  it('checks its lease again after a line has been read, because the process may have been frozen', async () => {
    let asked = 0;
    let askedWhenSent = 0;
    const { run, lease, seen } = await open(1, (request, response, socket) => {
      askedWhenSent = asked;
      ok(request, response, socket);
    });
    // The first check is in the loop, the second one right before the request.
    lease.maySend = () => ++asked !== 2;
    expect(await run()).toMatchObject({ next: 1, completed: 1 });
    expect(seen()).toHaveLength(1);
    expect(askedWhenSent).toBeGreaterThanOrEqual(4);
  });

  it('checks its lease again when the connection is made, and retries the line later', async () => {
    const { run, lease, seen, tries } = await open(1, ok);
    let refused = 0;
    // Once a request has begun, two checks fail: the one in the loop and the one before its first byte.
    lease.maySend = () => tries() !== 1 || ++refused > 2;
    expect(await run()).toMatchObject({ next: 1, completed: 1 });
    expect(tries()).toBe(2);
    expect(seen()).toHaveLength(1);
  });

  it('waits while its input cannot be read, with one log line and a reason in each heartbeat', async () => {
    const { run, store, warnings, tries } = await open(40, ok);
    const reader = store.open.bind(store);
    let fails = 0;
    let isBroken = true;
    store.open = async (key) => {
      const input = await reader(key);
      const read: typeof input.read = (...range) => {
        if (!isBroken) return input.read(...range);
        fails++;
        return Promise.reject(new NightshiftError('object_store_failed', 'read: EIO'));
      };
      return readerOf({ ...input, read });
    };
    const env = new MockActivityEnvironment();
    const waits = new Set<string | null>();
    env.on('heartbeat', ({ waitsFor }: { waitsFor: string | null }) => waits.add(waitsFor));
    const running = run({}, env);
    await until(() => waits.has('trying a line: read: EIO'), 5_000, 'a heartbeat that says so');
    expect(fails).toBeGreaterThan(1);
    expect([warnings, tries()]).toEqual([['lines cannot be tried'], 0]);
    isBroken = false;
    expect(await running).toMatchObject({ next: 40, completed: 40, failed: 0 });
  });

  it('loses no line while its gateway is away: all succeed when it is back', async () => {
    let away = true;
    const { run, answers } = await open(
      60,
      (request, response, socket) => {
        if (away) response.writeHead(503).end('{"error":{}}');
        else ok(request, response, socket);
      },
      { concurrency: { per_model: 4 } },
    );
    const running = run({ boxMs: 60_000 });
    await until(() => (world?.seen().length ?? 0) > 80, 20_000, 'many refused tries');
    away = false;
    expect(await running).toMatchObject({ next: 60, completed: 60, failed: 0 });
    expect((await answers()).size).toBe(60);
  });

  it('ends lines that always fail with the last answer of their gateway', async () => {
    const tries = new Map<string, number>();
    const { run, answers } = await open(5, (request, response) => {
      tries.set(nameOf(request), (tries.get(nameOf(request)) ?? 0) + 1);
      response.writeHead(503).end('{"error":{"message":"no"}}');
    });
    expect(await run()).toMatchObject({ next: 5, completed: 0, failed: 5 });
    expect([...tries.values()]).toEqual([3, 3, 3, 3, 3]);
    expect((await answers()).get(0)?.line.response).toMatchObject({ status_code: 503 });
  });

  it('waits for an unreachable gateway even for a few lines', async () => {
    const { run, server } = await open(1, ok);
    const port = server.port;
    await server.close();
    const running = run({ boxMs: 60_000 });
    const back = await until(
      () => startLocalServer(ok, undefined, port).catch(() => null),
      5_000,
      'the port',
      300,
    );
    expect(await running).toMatchObject({ next: 1, completed: 1 });
    await back.close();
  });

  it('does not count tries without a connection, so that all tries are left when the gateway is back', async () => {
    const { run, server } = await open(1, ok);
    const port = server.port;
    await server.close();
    const running = run({ boxMs: 60_000 });
    await until(() => (world?.tries() ?? 0) > 10, 10_000, 'far more tries than it has');
    let busy = 2;
    const back = await until(
      () =>
        startLocalServer(
          (request, response, socket) => {
            if (busy-- > 0) response.writeHead(503).end('{"error":{}}');
            else ok(request, response, socket);
          },
          undefined,
          port,
        ).catch(() => null),
      5_000,
      'the port',
      300,
    );
    expect(await running).toMatchObject({ next: 1, completed: 1 });
    await back.close();
  });

  describe('a line that is suspected of killing its workers', () => {
    const suspect = { from: 1, to: 2, solo: true, poison: true };

    /** Journals what a worker leaves behind that sends line 1 exclusively and dies. */
    async function dieAlone({ journal, offsetOf }: ChunkWorld): Promise<void> {
      const scope = { batchId: `batch_${'5e'.repeat(16)}`, safeModel: 'm' };
      const writer = journal.openWriter(scope, { from: 1, to: 2 });
      const note = { offset: offsetOf(1), tries: 0, notBeforeMs: 0, alone: true };
      writer.append(retryHeader(note), encodeRetryFrame(note, crc32));
      await writer.flush();
      await writer.close();
    }

    it('ends with an error without being sent if three workers died while it was sent exclusively', async () => {
      const world = await open(3, ok);
      for (let deaths = 0; deaths < 3; deaths++) await dieAlone(world);
      expect(await world.run(suspect)).toMatchObject({ next: 2, failed: 1 });
      expect(world.seen()).toEqual([]);
      expect((await world.answers()).get(1)?.line).toMatchObject({
        custom_id: 'l1',
        error: { code: 'internal_error' },
      });
    });

    it('is sent again if only two workers died while it was sent exclusively', async () => {
      const world = await open(3, ok);
      for (let deaths = 0; deaths < 2; deaths++) await dieAlone(world);
      expect(await world.run(suspect)).toMatchObject({ next: 2, completed: 1 });
      expect(world.seen()).toEqual(['l1']);
    });

    it('is noted in the journal before it is sent, and its outcome cancels the note', async () => {
      const notes: number[] = [];
      const world: ChunkWorld = await open(3, (request, response, socket) => {
        void world.deathsAlone(1).then((deaths) => {
          notes.push(deaths);
          if (notes.length === 1) response.writeHead(503).end();
          else ok(request, response, socket);
        });
      });
      expect(await world.run({ ...suspect, poison: false })).toMatchObject({ completed: 1 });
      expect(notes).toEqual([1, 1]);
      expect(await world.deathsAlone(1)).toBe(0);
    });
  });

  it('stops the batch when the plan is too short', async () => {
    const { run } = await open(3, ok);
    await expect(run({ to: 9 })).rejects.toMatchObject({
      type: 'plan_unreadable',
      nonRetryable: true,
    });
  });

  it.each([
    ['plan', planKey(BATCH_ID, NONCE, 'm'), 'plan_unreadable'],
    ['input', INPUT_KEY, 'input_missing'],
  ])('stops the batch when the %s is gone', async (_what, key, type) => {
    const { run, store } = await open(3, ok);
    await store.delete(key);
    await expect(run()).rejects.toMatchObject({ type, nonRetryable: true });
  });

  it('exits with drain, not with a stop, when the SDK cancels it at a worker shutdown', async () => {
    const slow = gate();
    const env = new MockActivityEnvironment();
    const { run } = await open(3, slow.answer);
    const running = run({}, env);
    await until(() => slow.held().length === 3, 5_000, 'all in flight');
    env.cancel('WORKER_SHUTDOWN', new ActivityCancellationDetails({ workerShutdown: true }));
    expect(await running).toMatchObject({ next: 0, left: 'drain', stopCause: null });
  });
});
