import pino from 'pino';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { listenForStops, type StopListener } from '../../../storage/postgres/stop-channel';
import { until } from '../../support/until';
import { useProgress } from './progress-scene';

const scene = useProgress();
let listener: StopListener | undefined;
afterEach(async () => {
  await scene.closeReporters();
  await listener?.close();
});

describe('progress', () => {
  it('gives a new chunk the stop cause or the end of its batch at once', async () => {
    const id = await scene.newBatch();
    const records = createBatchRepository(scene.database.pool, { outputFilesSec: 1 });
    const key = { batchId: id, safeModel: 'm', from: 0, to: 5 };
    const running = await scene.reporter('w1').begin(key);
    expect(running).toMatchObject({ stopCause: null, terminal: false });
    await running.release({ to: 5, completed: 0, failed: 0 });
    await records.claimCause(id, 'cancelled');
    const stopped = await scene.reporter('w2').begin(key);
    expect(stopped).toMatchObject({ stopCause: 'cancelled', terminal: false });
    await stopped.release({ to: 5, completed: 0, failed: 0 });
    await records.recordUnfinalized(id, null);
    const late = await scene.reporter('w3').begin(key);
    expect(late.terminal).toBe(true);
    expect(late.maySend()).toBe(false);
  });

  it('shows the sums of all chunks of the batch, and never more than the total', async () => {
    const id = await scene.newBatch(10);
    const one = await scene.reporter('w1').begin({ batchId: id, safeModel: 'm', from: 0, to: 5 });
    const two = await scene.reporter('w2').begin({ batchId: id, safeModel: 'm', from: 5, to: 10 });
    one.trackCounts({ completed: 3, failed: 1 });
    two.trackCounts({ completed: 4, failed: 0 });
    await until(async () => (await scene.counts(id)).completed === 7, 5_000, 'the sum');
    expect(await scene.counts(id)).toEqual({ completed: 7, failed: 1 });
    two.trackCounts({ completed: 40, failed: 40 });
    await until(async () => (await scene.counts(id)).completed >= 9, 5_000, 'the cap');
    const capped = await scene.counts(id);
    expect(capped.completed + capped.failed).toBeLessThanOrEqual(10);
  });

  it('returns the stop cause and the end of the batch', async () => {
    const id = await scene.newBatch();
    const lease = await scene
      .reporter('w1')
      .begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    const heard: string[] = [];
    lease.onChange(() => heard.push(String(lease.stopCause)));
    await scene.database.pool.query(`update batches set stop_cause = 'cancelled' where id = $1`, [
      id,
    ]);
    await until(() => heard.length > 0, 5_000, 'the cause to be heard');
    expect(lease.stopCause).toBe('cancelled');
    await scene.database.pool.query(`update batches set status = 'cancelled' where id = $1`, [id]);
    await until(() => lease.terminal, 5_000, 'the end to be heard');
    expect(lease.maySend()).toBe(false);
  });

  it('learns of a claimed stop at once through the channel, also after the connection was lost', async () => {
    const id = await scene.newBatch();
    const slow = scene.reporter('w1', { intervalMs: 60_000 });
    const heard: string[] = [];
    listener = listenForStops({
      url: scene.database.url,
      logger: pino({ level: 'silent' }),
      onStop: (batchId) => {
        heard.push(batchId);
        slow.checkNow(batchId);
      },
    });
    const lease = await slow.begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    // Idle: before that, the statement is known but a stop would not be heard. Other tests use the same server.
    const listening = `select pid from pg_stat_activity
      where datname = current_database() and query like 'listen %' and state = 'idle'`;
    const { rows } = await until(
      async () => {
        const found = await scene.database.pool.query<{ pid: number }>(listening);
        return found.rows.length > 0 ? found : null;
      },
      5_000,
      'the listener',
    );
    await scene.database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    await until(
      async () => {
        const found = await scene.database.pool.query<{ pid: number }>(listening);
        return found.rows[0] !== undefined && found.rows[0].pid !== rows[0]?.pid;
      },
      10_000,
      'a new connection',
    );
    const records = createBatchRepository(scene.database.pool, { outputFilesSec: 1 });
    await records.claimCause(id, 'cancelled');
    await until(() => lease.stopCause === 'cancelled', 5_000, 'the stop to be heard');
    expect(heard).toEqual([id]);
  });

  it('closes when everything is written, including a write behind a running statement', async () => {
    const id = await scene.newBatch();
    let letGo = (): void => undefined;
    const isLetGo = new Promise<void>((resolve) => (letGo = resolve));
    const touches = { begun: 0, ended: 0 };
    const pool = Object.assign(Object.create(scene.database.pool) as typeof scene.database.pool, {
      query: async (text: string, values: unknown[]) => {
        const isTouch = text.includes('touched as');
        if (isTouch && ++touches.begun === 1) await isLetGo;
        const answer = await scene.database.pool.query(text, values);
        if (isTouch) touches.ended++;
        return answer;
      },
    });
    const closing = scene.reporter('w1', { pool, intervalMs: 60_000 });
    await closing.begin({ batchId: id, safeModel: 'm', from: 0, to: 1 });
    closing.checkNow(id);
    await until(() => touches.begun === 1, 5_000, 'a statement under way');
    closing.checkNow(id);
    const closed = closing.close();
    letGo();
    await closed;
    expect(touches).toEqual({ begun: 2, ended: 2 });
  });

  it('waits for holders at work, not for those that have released', async () => {
    const id = await scene.newBatch();
    const shared = scene.reporter('w1');
    const lease = await shared.begin({ batchId: id, safeModel: 'm', from: 0, to: 10 });
    let waited = false;
    const waiting = shared.awaitReleased(id, 20_000).then(() => (waited = true));
    await until(async () => (await scene.counts(id)).completed === 0, 5_000, 'a round trip');
    expect(waited).toBe(false);
    await lease.release({ to: 10, completed: 0, failed: 0 });
    await waiting;
    expect(waited).toBe(true);
  });
});
