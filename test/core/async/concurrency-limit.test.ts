import { ConcurrencyLimit } from '../../../core/async/concurrency-limit';

it('runs at most as many tasks as it allows, in their order, also after a failure', async () => {
  const limit = new ConcurrencyLimit(2);
  const started: number[] = [];
  const ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const task = (id: number): Promise<void> =>
    limit.run(() => {
      started.push(id);
      return new Promise((resolve, reject) => ends.push({ resolve, reject }));
    });
  expect(limit.hasRoom).toBe(true);
  const tasks = [1, 2, 3, 4].map((id) => task(id));
  await Promise.resolve();
  expect([started, limit.hasRoom]).toEqual([[1, 2], false]);
  ends[0]?.reject(new Error('failed'));
  await expect(tasks[0]).rejects.toThrow('failed');
  expect(started).toEqual([1, 2, 3]);
  ends[1]?.resolve();
  await tasks[1];
  ends[2]?.resolve();
  await tasks[2];
  ends[3]?.resolve();
  await tasks[3];
  expect([started, limit.hasRoom]).toEqual([[1, 2, 3, 4], true]);
});
