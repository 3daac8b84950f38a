import { SyncRounds } from '../../../storage/journal/sync-rounds';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

it('syncs everything marked once per interval, a few at a time', async () => {
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

describe('an item that is marked during a round', () => {
  /** An item that is marked again at the given moment of a round; returns the times of its syncs. */
  function written(
    rounds: SyncRounds,
    when: 'as its sync begins' | 'while its sync runs' | 'while another one is synced',
  ) {
    const syncs: number[] = [];
    const item = {
      sync: async () => {
        syncs.push(Date.now());
        if (syncs.length > 2) return;
        if (when === 'as its sync begins') rounds.mark(item);
        await passes(10);
        if (when === 'while its sync runs') rounds.mark(item);
      },
    };
    const other = {
      sync: async () => {
        await passes(5);
        if (syncs.length <= 2) rounds.mark(item);
      },
    };
    rounds.mark(item);
    if (when === 'while another one is synced') rounds.mark(other);
    return syncs;
  }

  const passes = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  it.each([
    ['as its sync begins', 3],
    ['while its sync runs', 3],
    // The other item is synced only in the first round.
    ['while another one is synced', 2],
  ] as const)('%s is synced once more, in the next round', async (when, expected) => {
    const rounds = new SyncRounds({ intervalMs: 100, parallel: 2 });
    const syncs = written(rounds, when);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(syncs).toHaveLength(expected);
    syncs.slice(1).forEach((at, i) => expect(at - (syncs[i] ?? 0)).toBeGreaterThanOrEqual(100));
    expect(jest.getTimerCount()).toBe(0);
  });

  it('waits for the end of a round that takes longer than the interval', async () => {
    const rounds = new SyncRounds({ intervalMs: 100, parallel: 1 });
    let running = 0;
    const most: number[] = [];
    const item = {
      sync: async () => {
        most.push(++running);
        if (most.length < 4) rounds.mark(item);
        await passes(450);
        running--;
      },
    };
    rounds.mark(item);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(most).toEqual([1, 1, 1, 1]);
  });
});

it('waits in runNow for the running round and syncs what was marked meanwhile', async () => {
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
