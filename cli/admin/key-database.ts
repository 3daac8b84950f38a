import { NightshiftError, isNightshiftError } from '../../core/errors';
import { findSettings, loadConfig, type Config } from '../../platform/config';
import type { ApiKeyRepository } from '../../storage/postgres/api-keys';
import { lazy } from '../lazy-modules';
import { DEFAULT_DATA_DIR, hasStack, stackSettings } from '../stack/stack-settings';

/** Flags that name the database of the keys. */
export interface DatabaseFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

/**
 * Calls `work` with the keys of one API: the one whose settings or data directory the flags name, otherwise
 * the one in the environment, otherwise the stack in the default data directory.
 *
 * @throws config_invalid, postgres_unavailable, schema_outdated, schema_newer
 */
export async function withKeys<T>(
  flags: DatabaseFlags,
  work: (keys: ApiKeyRepository) => Promise<T>,
): Promise<T> {
  const dataDir = dataDirOf(flags);
  const { postgres } = dataDir === null ? namedSettings(flags) : stackSettings(dataDir);
  const pool = lazy.pool().openPool(postgres.url, { max: 1 });
  try {
    await lazy.migrate().checkSchema(pool);
    return await work(lazy.apiKeys().createApiKeyRepository(pool));
  } catch (error) {
    throw dataDir === null ? error : withAdvice(error, dataDir);
  } finally {
    await pool.end();
  }
}

function namedSettings({ config: file }: DatabaseFlags): Config {
  return loadConfig({ ...(file === undefined ? {} : { file }), needs: ['postgres'] });
}

/** The data directory that has the settings; `null` if a flag or the environment names them. */
function dataDirOf({ config, dataDir }: DatabaseFlags): string | null {
  if (dataDir !== undefined && config === undefined) {
    if (hasStack(dataDir)) return dataDir;
    const message = `no stack has run in ${dataDir}: start one with nightshift dev --data-dir ${dataDir}`;
    throw new NightshiftError('config_invalid', message);
  }
  const sources = config === undefined ? {} : { file: config };
  if (findSettings(sources, ['postgres.url']).has('postgres.url')) return null;
  const directory = dataDir ?? DEFAULT_DATA_DIR;
  if (hasStack(directory)) return directory;
  const message =
    'no database of API keys is configured: name its settings with --config or DATABASE_URL, or the data ' +
    'directory of a running nightshift dev with --data-dir';
  throw new NightshiftError('config_invalid', message);
}

function withAdvice(error: unknown, dataDir: string): unknown {
  if (!isNightshiftError(error, 'postgres_unavailable')) return error;
  const message = `${error.message}: is the stack in ${dataDir} running (nightshift dev)?`;
  return new NightshiftError('postgres_unavailable', message, { cause: error });
}
