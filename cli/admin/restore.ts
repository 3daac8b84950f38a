import { loadConfig } from '../../platform/config';
import type { LostBatchFate, RestoreReport } from '../../storage/restore';
import { configFile, type ConfigFlag } from '../config-flag';
import { lazy } from '../lazy-modules';
import { say, table } from '../output';

interface RestoreFlags extends ConfigFlag {
  readonly dryRun?: boolean;
}

/**
 * `nightshift restore`: brings a database from a backup up to what the object store knows. Exit status 1 if
 * the record of a batch cannot be read.
 * @throws config_invalid, schema_outdated, store_mismatch, postgres_unavailable, object_store_failed
 */
export async function runRestoreCommand({ dryRun = false, ...flags }: RestoreFlags): Promise<void> {
  const config = loadConfig({ ...configFile(flags), needs: ['postgres'] });
  const pool = lazy.pool().openPool(config.postgres.url);
  try {
    await lazy.migrate().checkSchema(pool);
    const storage = await lazy.storage().openStorage(config.object_store);
    try {
      await lazy.storeIdentity().verifyStoreIdentity(pool, storage.storeId);
      const rows = lazy.restoredRows().createRestoredRows(pool);
      const { store } = storage;
      printReport(await lazy.restore().restoreRows({ rows, store }, { dryRun }), dryRun);
    } finally {
      await storage.close();
    }
  } finally {
    await pool.end();
  }
}

const MEANING: Readonly<Record<LostBatchFate, string>> = {
  continues: 'continues from its journal',
  ends: 'ends with what is answered: its pass-through headers are lost',
  too_old: 'cannot come back: it ended, and its journal was removed after retention.scratch',
  unreadable:
    'not restored: its record is damaged, or a later release has written it; see docs/backup.md#restore',
};

function printReport({ batches, filesGone }: RestoreReport, dryRun: boolean): void {
  if (batches.length > 0) {
    const rows = batches.map(({ id, fate }) => [id, MEANING[fate]]);
    process.stdout.write(`${table([['batch without a row', 'what happens'], ...rows])}\n`);
  }
  const restored = batches.filter(({ fate }) => fate === 'continues' || fate === 'ends').length;
  const did = dryRun ? 'would be ' : '';
  say(`${restored} batches ${did}restored, ${filesGone} files ${did}noted as deleted`);
  if (batches.some(({ fate }) => fate === 'unreadable')) process.exitCode = 1;
  say('keys revoked since the backup are valid again: compare nightshift keys list');
}
