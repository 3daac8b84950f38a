import type { Pool } from 'pg';
import { isNightshiftError } from '../core/errors';
import type { Config } from '../platform/config-schema';
import type { StartWait } from '../platform/start-wait';
import { isStoreAway } from './objects/store-outage';
import { openStorage, type Storage, type StorageOptions } from './open-storage';
import { checkSchema } from './postgres/migrate';
import { verifyStoreIdentity } from './postgres/store-identity';

/** What {@link openCheckedStorage} needs. */
export interface CheckedStorageOptions extends StorageOptions {
  readonly pool: Pool;
  readonly wait: Pick<StartWait, 'until'>;
}

/**
 * Opens the object store of a process that starts, once the database has the right tables, and checks that
 * both belong together. Waits for those of them that are away. The caller closes the result.
 *
 * @throws schema_outdated, schema_newer, store_mismatch, config_invalid, postgres_unavailable,
 *   object_store_failed
 */
export async function openCheckedStorage(
  settings: Config['object_store'],
  { pool, wait, ...options }: CheckedStorageOptions,
): Promise<Storage> {
  const ask = (reach: () => Promise<void>) =>
    wait.until({ name: 'postgres', reach, isAway: isPostgresAway });
  await ask(() => checkSchema(pool));
  const reach = () => openStorage(settings, options);
  const storage = await wait.until({ name: 'object_store', reach, isAway: isStoreAway });
  try {
    await ask(() => verifyStoreIdentity(pool, storage.storeId));
    return storage;
  } catch (error) {
    await storage.close();
    throw error;
  }
}

function isPostgresAway(error: unknown): boolean {
  return isNightshiftError(error, 'postgres_unavailable');
}
