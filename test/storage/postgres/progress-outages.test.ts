import type { Pool } from 'pg';
import pino from 'pino';
import type { ChunkLease } from '../../../storage/postgres/chunk-lease';
import { openPool } from '../../../storage/postgres/pool';
import type { TcpProxy } from '../../support/tcp-proxy';
import { startTcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';
import { useProgress } from './progress-scene';

const scene = useProgress();
afterEach(() => scene.closeReporters());

describe('progress without PostgreSQL, or after a standstill', () => {
  it('does not trust an answer to a statement from before a standstill', async () => {
    const id = await scene.newBatch();
    const held: (() => void)[] = [];
    let holding = false;
    const pool = Object.assign(Object.create(scene.database.pool) as typeof scene.database.pool, {
      query: async (text: string, values: unknown[]) => {
        const answer = await scene.database.pool.query(text, values);
        if (holding && text.includes('touched_at')) {
          await new Promise<void>((resolve) => held.push(resolve));
        }
        return answer;
      },
    });
    const lease = await scene.reporter('w1', { pool }).begin({
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

  it('runs unfenced while PostgreSQL is away, and counts each failed tick', async () => {
    const away = openPool('postgres://nobody@127.0.0.1:1/none', { connectTimeoutMs: 200 });
    let failures = 0;
    const progress = scene.reporter('w1', { pool: away, onFailed: () => void failures++ });
    const lease = await progress.begin({ batchId: 'b', safeModel: 'm', from: 0, to: 1 });
    expect(lease.maySend()).toBe(true);
    await until(() => failures > 1, 5_000, 'two ticks that failed');
    await progress.close();
    await away.end();
  });

  it('takes a row with the second try, and knows of a stop before anything is sent', async () => {
    const id = await scene.newBatch();
    await scene.database.pool.query(`update batches set stop_cause = 'cancelled' where id = $1`, [
      id,
    ]);
    const { pool, failing } = failingPool();
    const progress = scene.reporter('w1', { pool, intervalMs: 60_000 });
    failing.next = 1;
    const lease = await progress.begin({ batchId: id, safeModel: 'm', from: 0, to: 1 });
    expect(lease.stopCause).toBe('cancelled');
    expect(failing.tries).toBe(2);
  });

  it('tries once if PostgreSQL was already away', async () => {
    const id = await scene.newBatch();
    const { pool, failing } = failingPool();
    const progress = scene.reporter('w1', { pool, intervalMs: 60_000 });
    const begin = (from: number) =>
      progress.begin({ batchId: id, safeModel: 'm', from, to: from + 1 });
    failing.next = Infinity;
    await begin(0);
    expect(failing.tries).toBe(2);
    expect((await begin(1)).maySend()).toBe(true);
    expect(failing.tries).toBe(3);
  });

  /** The pool of the scene, of which the `next` statements fail. */
  function failingPool() {
    const failing = { next: 0, tries: 0 };
    const { pool } = scene.database;
    const query = (text: string, values: unknown[]) => {
      failing.tries++;
      if (failing.next-- > 0) return Promise.reject(new Error('timed out'));
      return pool.query(text, values);
    };
    return { failing, pool: Object.assign(Object.create(pool) as typeof pool, { query }) };
  }

  describe('while Postgres hangs', () => {
    let proxy: TcpProxy;
    let pool: Pool;
    beforeEach(async () => {
      const url = new URL(scene.database.url);
      proxy = await startTcpProxy(Number(url.port));
      url.port = String(proxy.port);
      pool = openPool(url.href, { statementTimeoutMs: 500, connectTimeoutMs: 1_000 });
    });
    afterEach(async () => {
      await scene.closeReporters();
      await proxy.become('pass');
      await pool.end();
      await proxy.close();
    });

    it('logs once that chunks run unfenced, and once that they are fenced again', async () => {
      const lines: Record<string, unknown>[] = [];
      const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
      let failures = 0;
      const shared = scene.reporter('w1', {
        ...{ pool, intervalMs: 20, onFailed: () => void failures++ },
        logger: pino({}, { write }),
      });
      const id = await scene.newBatch();
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
      const id = await scene.newBatch();
      const shared = scene.reporter('w1', { pool });
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
      const id = await scene.newBatch();
      const shared = scene.reporter('w1', { pool });
      const begin = (from: number): Promise<ChunkLease> =>
        shared.begin({ batchId: id, safeModel: 'm', from, to: from + 1 });
      const lease = await begin(0);
      await proxy.become('hang');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_300);
      await until(() => !lease.maySend(), 5_000, 'the standstill to be noticed', 1);
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
});
