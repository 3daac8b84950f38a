import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import pino from 'pino';
import { batchIdFromBytes } from '../../../core/names/ids';
import type { ChunkLease } from '../../../storage/postgres/chunk-lease';
import { openPool } from '../../../storage/postgres/pool';
import type { ProgressOptions, ProgressReporter } from '../../../storage/postgres/progress';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { listenForStops } from '../../../storage/postgres/stop-channel';
import { createProgressReporter } from '../../../storage/postgres/progress';
import { takeEpoch } from '../../../storage/postgres/progress-sql';
import type { TestDatabase } from '../../support/postgres';
import { POSTGRES_START_MS, withDatabase } from '../../support/postgres';
import type { TcpProxy } from '../../support/tcp-proxy';
import { startTcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';

let database: TestDatabase;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  database = await withDatabase();
}, POSTGRES_START_MS);
afterEach(async () => {
  await Promise.all(open.splice(0).map((reporter) => reporter.close()));
});
afterAll(() => database?.close());

function reporter(worker: string, options: Partial<ProgressOptions> = {}): ProgressReporter {
  const created = createProgressReporter({
    ...{ pool: database.pool, worker, intervalMs: 50 },
    logger: pino({ level: 'silent' }),
    ...options,
  });
  open.push(created);
  return created;
}

async function newBatch(total = 10): Promise<string> {
  const id = batchIdFromBytes(randomBytes(16));
  await database.pool.query(
    `insert into batches (id, tenant, endpoint, input_file_id, completion_window, created_at, expires_at, total, status)
     values ($1, 't', '/v1/embeddings', 'file-x', '24h', 1, 2, $2, 'in_progress')`,
    [id, total],
  );
  return id;
}

async function counts(id: string): Promise<{ completed: number; failed: number }> {
  const { rows } = await database.pool.query<{ completed: number; failed: number }>(
    'select completed, failed from batches where id = $1',
    [id],
  );
  return rows[0] ?? { completed: -1, failed: -1 };
}

describe('progress and fence', () => {
  it('gives a new chunk the stop cause or the end of its batch at once', async () => {
    const id = await newBatch();
    const records = createBatchRepository(database.pool, { outputFilesSec: 1 });
    const key = { batchId: id, safeModel: 'm', from: 0, to: 5 };
    const running = await reporter('w1').begin(key);
    expect(running).toMatchObject({ stopCause: null, terminal: false });
    await running.release({ to: 5, completed: 0, failed: 0 });
    await records.claimCause(id, 'cancelled');
    const stopped = await reporter('w2').begin(key);
    expect(stopped).toMatchObject({ stopCause: 'cancelled', terminal: false });
    await stopped.release({ to: 5, completed: 0, failed: 0 });
    await records.recordUnfinalized(id, null);
    const late = await reporter('w3').begin(key);
    expect(late.terminal).toBe(true);
    expect(late.maySend()).toBe(false);
  });

  it('shows the sums of all chunks of the batch, and never more than the total', async () => {
    const id = await newBatch(10);
    const one = await reporter('w1').begin({ batchId: id, safeModel: 'm', from: 0, to: 5 });
    const two = await reporter('w2').begin({ batchId: id, safeModel: 'm', from: 5, to: 10 });
    one.trackCounts({ completed: 3, failed: 1 });
    two.trackCounts({ completed: 4, failed: 0 });
    await until(async () => (await counts(id)).completed === 7, 5_000, 'the sum');
    expect(await counts(id)).toEqual({ completed: 7, failed: 1 });
    two.trackCounts({ completed: 40, failed: 40 });
    await until(async () => (await counts(id)).completed >= 9, 5_000, 'the cap');
    const capped = await counts(id);
    expect(capped.completed + capped.failed).toBeLessThanOrEqual(10);
  });

  it('takes nothing from a holder at work if its heartbeat is answered with a cancel', async () => {
    const id = await newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const holder = await reporter('w1').begin(key, new AbortController().signal);
    const notWanted = new AbortController();
    const late = reporter('w2').begin(key, notWanted.signal);
    notWanted.abort();
    expect(await late).toMatchObject({ lost: true });
    expect((await late).maySend()).toBe(false);
    await holder.release({ to: 10, completed: 1, failed: 0 });
    expect(holder.lost).toBe(false);
    const { rows } = await database.pool.query(
      'select worker, released from chunk_progress where batch_id = $1',
      [id],
    );
    expect(rows).toEqual([{ worker: 'w1', released: true }]);
  });

  it('takes the range from a holder at work if its heartbeat is not answered with a cancel', async () => {
    const id = await newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const holder = await reporter('w1').begin(key);
    const next = await reporter('w2').begin(key, new AbortController().signal);
    await until(() => holder.lost, 5_000, 'the fence');
    expect(next.lost).toBe(false);
  });

  it('takes the range from an earlier attempt, which learns it and stops sending', async () => {
    const id = await newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const old = await reporter('w1').begin(key);
    expect(old.maySend()).toBe(true);
    const taken = reporter('w2').begin(key);
    await until(() => old.lost, 5_000, 'the old attempt to lose its row');
    expect(old.maySend()).toBe(false);
    const fresh = await taken;
    expect(fresh.lost).toBe(false);
    expect(fresh.maySend()).toBe(true);
    await old.release({ to: 10, completed: 10, failed: 0 });
    expect(fresh.lost).toBe(false);
  });

  it('sends nothing before an earlier holder has learned that it lost its range', async () => {
    const id = await newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    // The interval is so long that the holder does not learn of the loss at once.
    const holder = await reporter('w1', { intervalMs: 1_000 }).begin(key);
    await reporter('w2').begin(key);
    expect(holder.lost).toBe(true);
  });

  it('takes a released range without waiting', async () => {
    const id = await newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const first = await reporter('w1').begin(key);
    await first.release({ to: 4, completed: 4, failed: 0 });
    const attempt = { ...key, from: 4, worker: 'w2', yielding: true };
    const taken = await takeEpoch(database.pool, attempt);
    expect(taken).toMatchObject({ epoch: expect.any(Number), earlierTouchedMsAgo: null });
  });

  it('fences two attempts of one chunk inside one process', async () => {
    const id = await newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const shared = reporter('w1');
    const old = await shared.begin(key);
    const taken = shared.begin(key);
    await until(() => old.lost, 5_000, 'the older lease to be superseded');
    expect((await taken).lost).toBe(false);
  });

  it('returns the stop cause and the end of the batch', async () => {
    const id = await newBatch();
    const lease = await reporter('w1').begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    const heard: string[] = [];
    lease.onChange(() => heard.push(String(lease.stopCause)));
    await database.pool.query(`update batches set stop_cause = 'cancelled' where id = $1`, [id]);
    await until(() => heard.length > 0, 5_000, 'the cause to be heard');
    expect(lease.stopCause).toBe('cancelled');
    await database.pool.query(`update batches set status = 'cancelled' where id = $1`, [id]);
    await until(() => lease.terminal, 5_000, 'the end to be heard');
    expect(lease.maySend()).toBe(false);
  });

  it('learns of a claimed stop at once through the channel, also after the connection was lost', async () => {
    const id = await newBatch();
    const slow = createProgressReporter({
      pool: database.pool,
      worker: 'w1',
      logger: pino({ level: 'silent' }),
      intervalMs: 60_000,
    });
    open.push(slow);
    const heard: string[] = [];
    const listener = listenForStops({
      url: database.url,
      logger: pino({ level: 'silent' }),
      onStop: (batchId) => {
        heard.push(batchId);
        slow.checkNow(batchId);
      },
    });
    open.push(listener);
    const lease = await slow.begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    // Idle: before that, the statement is known but a stop would not be heard.
    const listening = `select pid from pg_stat_activity where query like 'listen %' and state = 'idle'`;
    const { rows } = await until(
      async () => {
        const found = await database.pool.query<{ pid: number }>(listening);
        return found.rows.length > 0 ? found : null;
      },
      5_000,
      'the listener',
    );
    await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    await until(
      async () => {
        const found = await database.pool.query<{ pid: number }>(listening);
        return found.rows[0] !== undefined && found.rows[0].pid !== rows[0]?.pid;
      },
      10_000,
      'a new connection',
    );
    const records = createBatchRepository(database.pool, { outputFilesSec: 1 });
    await records.claimCause(id, 'cancelled');
    await until(() => lease.stopCause === 'cancelled', 5_000, 'the stop to be heard');
    expect(heard).toEqual([id]);
  });

  it('does not trust an answer to a statement from before a standstill', async () => {
    const id = await newBatch();
    const held: (() => void)[] = [];
    let holding = false;
    const pool = Object.assign(Object.create(database.pool) as typeof database.pool, {
      query: async (text: string, values: unknown[]) => {
        const answer = await database.pool.query(text, values);
        if (holding && text.includes('touched_at')) {
          await new Promise<void>((resolve) => held.push(resolve));
        }
        return answer;
      },
    });
    const lease = await reporter('w1', { pool }).begin({
      batchId: id,
      safeModel: 'm',
      from: 0,
      to: 1,
    });
    holding = true;
    await until(() => held.length === 1, 5_000, 'a statement under way');
    // Blocks the event loop for longer than a tick may be late.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_300);
    // The late tick runs first, then the old answer arrives.
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(lease.maySend()).toBe(false);
    held[0]?.();
    await until(() => held.length === 2, 5_000, 'the statement after it');
    expect(lease.maySend()).toBe(false);
    holding = false;
    held[1]?.();
    await until(() => lease.maySend(), 5_000, 'the answer to a later statement');
  });

  it('closes when everything is written, including a write behind a running statement', async () => {
    const id = await newBatch();
    let letGo = (): void => undefined;
    const isLetGo = new Promise<void>((resolve) => (letGo = resolve));
    const touches = { begun: 0, ended: 0 };
    const pool = Object.assign(Object.create(database.pool) as typeof database.pool, {
      query: async (text: string, values: unknown[]) => {
        const isTouch = text.includes('touched as');
        if (isTouch && ++touches.begun === 1) await isLetGo;
        const answer = await database.pool.query(text, values);
        if (isTouch) touches.ended++;
        return answer;
      },
    });
    const closing = createProgressReporter({
      pool,
      worker: 'w1',
      logger: pino({ level: 'silent' }),
      intervalMs: 60_000,
    });
    await closing.begin({ batchId: id, safeModel: 'm', from: 0, to: 1 });
    closing.checkNow(id);
    await until(() => touches.begun === 1, 5_000, 'a statement under way');
    closing.checkNow(id);
    const closed = closing.close();
    letGo();
    await closed;
    expect(touches).toEqual({ begun: 2, ended: 2 });
  });

  it('runs unfenced while PostgreSQL is away, and counts each failed tick', async () => {
    const away = openPool('postgres://nobody@127.0.0.1:1/none', { connectTimeoutMs: 200 });
    let failures = 0;
    const progress = reporter('w1', { pool: away, onFailed: () => void failures++ });
    const lease = await progress.begin({ batchId: 'b', safeModel: 'm', from: 0, to: 1 });
    expect(lease.maySend()).toBe(true);
    await until(() => failures > 1, 5_000, 'two ticks that failed');
    await progress.close();
    await away.end();
  });

  describe('while Postgres hangs', () => {
    let proxy: TcpProxy;
    let pool: Pool;
    beforeEach(async () => {
      const url = new URL(database.url);
      proxy = await startTcpProxy(Number(url.port));
      url.port = String(proxy.port);
      pool = openPool(url.href, { statementTimeoutMs: 500, connectTimeoutMs: 1_000 });
    });
    afterEach(async () => {
      await Promise.all(open.splice(0).map((it) => it.close()));
      await proxy.become('pass');
      await pool.end();
      await proxy.close();
    });

    it('logs once that chunks run unfenced, and once that they are fenced again', async () => {
      const lines: Record<string, unknown>[] = [];
      const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
      let failures = 0;
      const shared = createProgressReporter({
        ...{ pool, worker: 'w1', intervalMs: 20, onFailed: () => void failures++ },
        logger: pino({}, { write }),
      });
      open.push(shared);
      const id = await newBatch();
      const begin = (from: number): Promise<ChunkLease> =>
        shared.begin({ batchId: id, safeModel: 'm', from, to: from + 1 });
      const first = await begin(0);
      await proxy.become('refuse');
      await begin(1);
      await begin(2);
      await until(() => failures > 3, 20_000, 'ticks that failed');
      await proxy.become('pass');
      const said = (part: string) => lines.filter(({ msg }) => String(msg).includes(part));
      await until(() => said('fenced again').length > 0, 20_000, 'the end of the outage');
      await until(() => said('written again').length > 0, 20_000, 'progress');
      expect(lines.map(({ msg }) => msg).sort()).toEqual([
        'chunks are fenced again',
        'chunks run unfenced for now',
        'progress is written again',
        'progress not written; retried every second',
      ]);
      expect(Number(said('fenced again')[0]?.['failures'])).toBeGreaterThan(2);
      expect(first.maySend()).toBe(true);
    });

    it('lets ended chunks return and new ones begin', async () => {
      const id = await newBatch();
      const shared = reporter('w1', { pool });
      const begin = (from: number): Promise<ChunkLease> =>
        shared.begin({ batchId: id, safeModel: 'm', from, to: from + 1 });
      const [lease] = await Promise.all([begin(0), begin(1), begin(2)]);
      await proxy.become('hang');
      await lease.release({ to: 1, completed: 1, failed: 0 });
      const next = await begin(3);
      expect(next.maySend()).toBe(true);
      await next.release({ to: 4, completed: 1, failed: 0 });
    });

    it('sends nothing after a standstill, and gives its chunks back after a while', async () => {
      const id = await newBatch();
      const shared = reporter('w1', { pool });
      const begin = (from: number): Promise<ChunkLease> =>
        shared.begin({ batchId: id, safeModel: 'm', from, to: from + 1 });
      const lease = await begin(0);
      await proxy.become('hang');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_300);
      await until(() => !lease.maySend(), 1_000, 'the standstill to be noticed', 1);
      expect(lease.unconfirmed).toBe(false);
      await until(() => lease.unconfirmed, 10_000, 'the end of its wait for PostgreSQL');
      await lease.release({ to: 0, completed: 0, failed: 0 });
      const next = await begin(1);
      expect(next.maySend()).toBe(false);
      expect(next.unconfirmed).toBe(true);
      await next.release({ to: 1, completed: 0, failed: 0 });

      await proxy.become('pass');
      const later = await begin(2);
      await until(() => later.maySend(), 10_000, 'an answer');
      expect(later.unconfirmed).toBe(false);
    });
  });

  it('waits for holders at work, not for those that have released', async () => {
    const id = await newBatch();
    const shared = reporter('w1');
    const lease = await shared.begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    let waited = false;
    const waiting = shared.awaitReleased(id, 20_000).then(() => (waited = true));
    await until(async () => (await counts(id)).completed === 0, 1_000, 'a round trip');
    expect(waited).toBe(false);
    await lease.release({ to: 10, completed: 0, failed: 0 });
    await waiting;
    expect(waited).toBe(true);
  });
});
