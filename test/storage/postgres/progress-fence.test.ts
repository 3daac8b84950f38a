import { takeEpoch } from '../../../storage/postgres/progress-sql';
import { until } from '../../support/until';
import { useProgress } from './progress-scene';

const scene = useProgress();

/** Each waits for 3 s for the next tick of another holder. They share no batch and run at once. */
describe('the fence of a chunk', () => {
  it.concurrent(
    'takes nothing from a holder at work if its heartbeat is answered with a cancel',
    async () => {
      const id = await scene.newBatch();
      const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
      const holder = await scene.reporter('w1').begin(key, new AbortController().signal);
      const notWanted = new AbortController();
      // The heartbeat that is sent while it yields is answered with a cancel.
      const late = scene.reporter('w2').begin(key, notWanted.signal, () => notWanted.abort());
      expect(await late).toMatchObject({ lost: true });
      expect((await late).maySend()).toBe(false);
      await holder.release({ to: 10, completed: 1, failed: 0 });
      expect(holder.lost).toBe(false);
      const { rows } = await scene.database.pool.query(
        'select worker, released from chunk_progress where batch_id = $1',
        [id],
      );
      expect(rows).toEqual([{ worker: 'w1', released: true }]);
    },
  );

  it.concurrent(
    'takes the range from a holder at work if its heartbeat is not answered with a cancel',
    async () => {
      const id = await scene.newBatch();
      const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
      const holder = await scene.reporter('w1').begin(key);
      const next = await scene.reporter('w2').begin(key, new AbortController().signal);
      await until(() => holder.lost, 5_000, 'the fence');
      expect(next.lost).toBe(false);
    },
  );

  it.concurrent(
    'takes the range from an earlier attempt, which learns it and stops sending',
    async () => {
      const id = await scene.newBatch();
      const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
      const old = await scene.reporter('w1').begin(key);
      expect(old.maySend()).toBe(true);
      const taken = scene.reporter('w2').begin(key);
      await until(() => old.lost, 5_000, 'the old attempt to lose its row');
      expect(old.maySend()).toBe(false);
      const fresh = await taken;
      expect(fresh.lost).toBe(false);
      expect(fresh.maySend()).toBe(true);
      await old.release({ to: 10, completed: 10, failed: 0 });
      expect(fresh.lost).toBe(false);
    },
  );

  it.concurrent(
    'sends nothing before an earlier holder has learned that it lost its range',
    async () => {
      const id = await scene.newBatch();
      const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
      // The interval is so long that the holder does not learn of the loss at once.
      const holder = await scene.reporter('w1', { intervalMs: 1_000 }).begin(key);
      await scene.reporter('w2').begin(key);
      expect(holder.lost).toBe(true);
    },
  );

  it.concurrent('takes a released range without waiting', async () => {
    const id = await scene.newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const first = await scene.reporter('w1').begin(key);
    await first.release({ to: 4, completed: 4, failed: 0 });
    const attempt = { ...key, from: 4, worker: 'w2', yielding: true };
    const taken = await takeEpoch(scene.database.pool, attempt);
    expect(taken).toMatchObject({ epoch: expect.any(Number), earlierTouchedMsAgo: null });
  });

  it.concurrent('fences two attempts of one chunk inside one process', async () => {
    const id = await scene.newBatch();
    const key = { batchId: id, safeModel: 'm', from: 0, to: 10 };
    const shared = scene.reporter('w1');
    const old = await shared.begin(key);
    const taken = shared.begin(key);
    await until(() => old.lost, 5_000, 'the older lease to be superseded');
    expect((await taken).lost).toBe(false);
  });
});
