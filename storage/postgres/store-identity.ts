import type { Pool } from 'pg';
import { NightshiftError } from '../../core/errors';
import { explainRefusal } from './grants';
import { query } from './sql';

/**
 * Checks that this database and this object store belong together: the first process writes the id of the
 * store, and every later one must find the same (docs/design/read-model.md#store-identity).
 *
 * @throws store_mismatch, postgres_unavailable, config_invalid if this user may not use the tables
 */
export async function verifyStoreIdentity(pool: Pool, storeId: string): Promise<void> {
  const text = `insert into installation (store_id) values ($1) on conflict (singleton) do nothing`;
  await explainRefusal(query(pool, text, [storeId]));
  const [row] = await query<{ store_id: string }>(pool, 'select store_id from installation');
  if (row?.store_id === storeId) return;
  throw new NightshiftError(
    'store_mismatch',
    `this database belongs to object store ${row?.store_id ?? '?'}, but the configured one is ${storeId}: ` +
      'set object_store to the store that all processes share, or postgres.url to the database of this store',
  );
}
