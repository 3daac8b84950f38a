import { NightshiftError } from '../../core/errors';
import { CallerKeys } from '../../gateway/caller-keys';

/** Keys of a database that the test changes, and a clock that it moves. */
function keys(valid: Record<string, string>) {
  const state = { nowMs: 0, isAway: false, asked: 0 };
  const lookUp = async (key: string) => {
    state.asked++;
    if (state.isAway) throw new NightshiftError('postgres_unavailable', 'away');
    const tenant = valid[key];
    return tenant === undefined ? null : { tenant };
  };
  const cache = new CallerKeys(lookUp, () => state.nowMs);
  const tenant = async (key: string) => (await cache.authenticate(key))?.tenant ?? null;
  return Object.assign(state, { valid, tenant });
}

it('looks up a key once a minute, also for requests that come together', async () => {
  const state = keys({ k: 'ann' });
  expect(await Promise.all([state.tenant('k'), state.tenant('k')])).toEqual(['ann', 'ann']);
  delete state.valid['k'];
  state.nowMs = 59_999;
  expect([await state.tenant('k'), state.asked]).toEqual(['ann', 1]);
  state.nowMs = 60_000;
  expect([await state.tenant('k'), state.asked]).toEqual([null, 2]);
  state.valid['k'] = 'ann';
  expect(await state.tenant('k')).toBeNull();
  state.nowMs = 120_000;
  expect(await state.tenant('k')).toBe('ann');
});

it('lets known keys work for ten minutes while PostgreSQL is away, and asks it every 5 s', async () => {
  const state = keys({ k: 'ann' });
  await state.tenant('k');
  state.isAway = true;
  state.nowMs = 60_000;
  expect([await state.tenant('k'), state.asked]).toEqual(['ann', 2]);
  state.nowMs = 64_999;
  expect([await state.tenant('k'), state.asked]).toEqual(['ann', 2]);
  state.nowMs = 65_000;
  expect([await state.tenant('k'), state.asked]).toEqual(['ann', 3]);
  state.nowMs = 599_999;
  expect(await state.tenant('k')).toBe('ann');
  state.nowMs = 600_000;
  await expect(state.tenant('k')).rejects.toThrow('away');
  state.isAway = false;
  expect(await state.tenant('k')).toBe('ann');
});

it('asks PostgreSQL about unknown keys even while it is away', async () => {
  const state = keys({ k: 'ann' });
  state.isAway = true;
  await expect(state.tenant('k')).rejects.toThrow('away');
  state.isAway = false;
  expect(await state.tenant('k')).toBe('ann');
});

it('does not forget valid keys because of many wrong ones', async () => {
  const state = keys({ k: 'ann' });
  await state.tenant('k');
  for (let i = 0; i < 10_001; i++) await state.tenant(`wrong-${i}`);
  const { asked } = state;
  expect([await state.tenant('k'), state.asked - asked]).toEqual(['ann', 0]);
  expect([await state.tenant('wrong-0'), state.asked - asked]).toEqual([null, 1]);
});
