import {
  type IdempotencyKey,
  isKeyTaken,
  once,
  type Once,
} from '../../../storage/postgres/idempotency';
import { inTransaction } from '../../../storage/postgres/sql';
import { useDatabase } from '../../support/postgres';

const NOW_SEC = 1_700_000_000;
const DAY_SEC = 24 * 3_600;

const database = useDatabase('idempotency_keys');

type Place = Partial<IdempotencyKey>;
const keyOf = (over: Place): IdempotencyKey => ({
  ...{ tenant: 'ann', route: 'POST /v1/files', key: 'k', fingerprint: 'same', nowSec: NOW_SEC },
  ...over,
});
const make = (objectId: string, over: Place = {}): Promise<Once<string>> =>
  once(database.pool, { key: keyOf(over), objectId }, async () => objectId);
const isTaken = (over: Place = {}): Promise<boolean> =>
  inTransaction(database.pool, (client) => isKeyTaken(client, keyOf(over)));

const OTHERS: readonly Place[] = [
  { tenant: 'bob' },
  { route: 'POST /v1/batches' },
  { key: 'another' },
];

it.each(OTHERS)('treats a key with %j as another key', async (other) => {
  expect(await make('first')).toEqual({ kind: 'made', object: 'first' });
  expect(await isTaken()).toBe(true);
  expect(await isTaken(other)).toBe(false);
  expect(await make('second', other)).toEqual({ kind: 'made', object: 'second' });
  expect(await isTaken(other)).toBe(true);
  // Each key leads to its own object.
  expect(await make('third')).toEqual({ kind: 'repeated', id: 'first' });
  expect(await make('third', other)).toEqual({ kind: 'repeated', id: 'second' });
});

it('keeps a key for exactly a day, and then gives it to another request', async () => {
  await make('first');
  const last = { nowSec: NOW_SEC + DAY_SEC - 1 };
  expect(await isTaken(last)).toBe(true);
  expect(await make('second', last)).toEqual({ kind: 'repeated', id: 'first' });
  expect(await make('second', { ...last, fingerprint: 'other' })).toEqual({ kind: 'reused' });
  const over = { nowSec: NOW_SEC + DAY_SEC, fingerprint: 'other' };
  expect(await isTaken(over)).toBe(false);
  expect(await make('second', over)).toEqual({ kind: 'made', object: 'second' });
  // The key is now kept for a day from the new request.
  const later = { nowSec: NOW_SEC + 2 * DAY_SEC - 1 };
  expect(await make('third', { ...later, fingerprint: 'other' })).toEqual({
    kind: 'repeated',
    id: 'second',
  });
  expect(await make('third', later)).toEqual({ kind: 'reused' });
});

it('frees a key if the request that took it created no object', async () => {
  const failed = once(database.pool, { key: keyOf({}), objectId: 'first' }, () =>
    Promise.reject(new Error('no room')),
  );
  await expect(failed).rejects.toThrow('no room');
  expect(await isTaken()).toBe(false);
  expect(await make('second')).toEqual({ kind: 'made', object: 'second' });
});
