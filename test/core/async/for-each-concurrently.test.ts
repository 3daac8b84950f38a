import { forEachConcurrently } from '../../../core/async/for-each-concurrently';

/** Work that ends when the test resolves it. */
function heldWork() {
  const held = new Map<number, { done(): void; fail(error: Error): void }>();
  const work = (item: number): Promise<void> =>
    new Promise((resolve, reject) => held.set(item, { done: resolve, fail: reject }));
  return { held, work };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('runs at most the given number of items at a time, in their order', async () => {
  const { held, work } = heldWork();
  const all = forEachConcurrently([1, 2, 3], 2, work);
  await turn();
  expect([...held.keys()]).toEqual([1, 2]);
  held.get(2)?.done();
  await turn();
  expect([...held.keys()]).toEqual([1, 2, 3]);
  held.get(1)?.done();
  held.get(3)?.done();
  await expect(all).resolves.toBeUndefined();
});

it('starts nothing after a failure, and throws it when running work has settled', async () => {
  const { held, work } = heldWork();
  let isOver = false;
  const all = forEachConcurrently([1, 2, 3, 4], 2, work).finally(() => (isOver = true));
  all.catch(() => undefined);
  await turn();
  held.get(1)?.fail(new Error('broken'));
  await turn();
  expect(isOver).toBe(false);
  held.get(2)?.done();
  await expect(all).rejects.toThrow('broken');
  expect([...held.keys()]).toEqual([1, 2]);
});
