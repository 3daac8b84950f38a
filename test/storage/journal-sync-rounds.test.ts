import { SyncRounds } from '../../storage/journal/sync-rounds';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('syncs all that was marked, a few at a time, once an interval', async () => {
  const rounds = new SyncRounds({ intervalMs: 2_000, parallel: 3 });
  let running = 0;
  let most = 0;
  let syncs = 0;
  const item = () => ({
    sync: async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 10));
      running--;
      syncs++;
    },
  });
  const items = Array.from({ length: 10 }, item);
  for (const each of items) rounds.mark(each);
  for (const each of items) rounds.mark(each);
  await jest.advanceTimersByTimeAsync(1_999);
  expect(syncs).toBe(0);
  await jest.advanceTimersByTimeAsync(100);
  expect(syncs).toBe(10);
  expect(most).toBe(3);
  rounds.mark(items[0]!);
  await jest.advanceTimersByTimeAsync(1_900);
  expect(syncs).toBe(10);
  await jest.advanceTimersByTimeAsync(200);
  expect(syncs).toBe(11);
  expect(jest.getTimerCount()).toBe(0);
});

test('what is marked during a round waits for the next', async () => {
  const rounds = new SyncRounds({ intervalMs: 100, parallel: 1 });
  let syncs = 0;
  const again = { sync: async () => void (++syncs < 3 && rounds.mark(again)) };
  rounds.mark(again);
  await jest.advanceTimersByTimeAsync(100);
  expect(syncs).toBe(1);
  await jest.advanceTimersByTimeAsync(100);
  expect(syncs).toBe(2);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(syncs).toBe(3);
});

test('runNow waits for a running round and takes what came meanwhile', async () => {
  jest.useRealTimers();
  const rounds = new SyncRounds({ intervalMs: 60_000, parallel: 2 });
  const synced: string[] = [];
  const item = (name: string) => ({ sync: async () => void synced.push(name) });
  rounds.mark(item('a'));
  const first = rounds.runNow();
  rounds.mark(item('b'));
  await Promise.all([first, rounds.runNow()]);
  expect(synced).toEqual(['a', 'b']);
});
