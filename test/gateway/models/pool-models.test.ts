import { PoolModels, type ModelSource } from '../../../gateway/models/pool-models';

/** A backend that lists these models; null gives no list. */
function source(...models: readonly (string | null)[]) {
  const state = {
    isReady: true,
    asked: 0,
    models: models.filter((id) => id !== null) as readonly string[] | null,
  };
  const read = async () => {
    state.asked++;
    return state.models === null ? null : state.models.map((id) => ({ id }));
  };
  return Object.assign(state, { read }) satisfies ModelSource;
}

function pool(...sources: readonly ModelSource[]) {
  const clock = { nowMs: 0 };
  const models = new PoolModels(sources, () => clock.nowMs);
  const ids = async () => (await models.list())?.map(({ id }) => id) ?? null;
  return { clock, ids };
}

it('merges what backends list, and asks them once in 10 s however many clients ask', async () => {
  const [first, second] = [source('a', 'b'), source('b', 'c')];
  const { clock, ids } = pool(first, second);
  const lists = await Promise.all([ids(), ids(), ids()]);
  expect(lists).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ]);
  second.models = [];
  clock.nowMs = 9_999;
  expect(await ids()).toEqual(['a', 'b', 'c']);
  expect([first.asked, second.asked]).toEqual([1, 1]);
  clock.nowMs = 10_000;
  expect(await ids()).toEqual(['a', 'b']);
  expect([first.asked, second.asked]).toEqual([2, 2]);
});

it('keeps the last list while all backends are away, and asks none that is not ready', async () => {
  const [first, second] = [source('a'), source('b')];
  const { clock, ids } = pool(first, second);
  second.isReady = false;
  expect(await ids()).toEqual(['a']);
  expect(second.asked).toBe(0);
  first.models = null;
  clock.nowMs = 10_000;
  expect(await ids()).toEqual(['a']);
  first.isReady = false;
  clock.nowMs = 20_000;
  expect(await ids()).toEqual(['a']);
  expect(first.asked).toBe(2);
});

it('does not take silence for a pool without models, and asks again after a second', async () => {
  const only = source('a');
  only.models = null;
  const { clock, ids } = pool(only);
  expect(await ids()).toBeNull();
  only.models = ['a'];
  clock.nowMs = 999;
  expect(await ids()).toBeNull();
  clock.nowMs = 1_000;
  expect(await ids()).toEqual(['a']);
});
