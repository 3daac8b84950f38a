import { loadConfig, redactUrl } from '../../platform/config';
import { configFile, type ConfigFlag } from '../config-flag';
import { lazy } from '../lazy-modules';
import { say } from '../output';

interface MigrateFlags extends ConfigFlag {
  readonly skipNamespace?: boolean;
}

/**
 * `nightshift migrate`: brings the tables up to date, then the namespace's search attributes, retention
 * and schedules. Idempotent.
 *
 * @throws config_invalid, postgres_unavailable, schema_newer, temporal_unavailable
 */
export async function runMigrateCommand(flags: MigrateFlags): Promise<void> {
  const config = loadConfig({ ...configFile(flags), needs: ['postgres'] });
  const pool = lazy.pool().openPool(config.postgres.url);
  try {
    await lazy.migrate().migrate(pool, config.postgres.grants);
  } finally {
    await pool.end();
  }
  say(`tables are up to date: ${redactUrl(config.postgres.url)}`);
  const { namespace, address } = config.temporal;
  if (flags.skipNamespace === true) {
    say(
      `namespace ${namespace} of ${address} was not changed; nightshift doctor shows what it lacks`,
    );
    return;
  }
  await lazy.namespace().prepareNamespace(config.temporal);
  await lazy.schedules().prepareSchedules(config.temporal);
  say(`namespace ${namespace} of ${address} is up to date`);
}
