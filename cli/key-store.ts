import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError, isGatewayError } from '../core/errors';
import { findSettings, loadConfig } from '../platform/config';
import type { ApiKeyRepository } from '../storage/postgres/api-keys';
import { rooms } from './rooms';

/** How a command finds the database of the keys. */
export interface DatabaseFlags {
  readonly config?: string;
  readonly dataDir?: string;
}

const USUAL_DATA_DIR = '.nightshift';

/** The settings that a stack in a data directory runs with. */
export function settingsIn(dataDir: string): string {
  return join(dataDir, 'run', 'config.json');
}

/**
 * Works on the keys of the API whose settings or data directory the flags name; without any, of the
 * settings in the environment, or of a stack in the usual data directory.
 *
 * @throws config_invalid, postgres_unavailable, schema_outdated, schema_newer
 */
export async function onKeys<T>(
  flags: DatabaseFlags,
  work: (keys: ApiKeyRepository) => Promise<T>,
): Promise<T> {
  const dataDir = dataDirOf(flags);
  const file = dataDir === null ? flags.config : settingsIn(dataDir);
  const { postgres } = loadConfig({ ...(file === undefined ? {} : { file }), needs: ['postgres'] });
  const pool = rooms.pool().openPool(postgres.url, { max: 1 });
  try {
    await rooms.migrate().checkSchema(pool);
    return await work(rooms.apiKeys().createApiKeyRepository(pool));
  } catch (error) {
    throw dataDir === null ? error : withAdvice(error, dataDir);
  } finally {
    await pool.end();
  }
}

function dataDirOf({ config, dataDir }: DatabaseFlags): string | null {
  if (dataDir !== undefined && config === undefined) {
    if (existsSync(settingsIn(dataDir))) return dataDir;
    const message = `no stack has run in ${dataDir}: start one with nightshift dev --data-dir ${dataDir}`;
    throw new GatewayError('config_invalid', message);
  }
  const sources = config === undefined ? {} : { file: config };
  if (findSettings(sources, ['postgres.url']).has('postgres.url')) return null;
  const usual = dataDir ?? USUAL_DATA_DIR;
  if (existsSync(settingsIn(usual))) return usual;
  const message =
    'where are the keys? Say it with --config or DATABASE_URL, or name the data directory of a ' +
    'stack that nightshift dev is running with --data-dir';
  throw new GatewayError('config_invalid', message);
}

function withAdvice(error: unknown, dataDir: string): unknown {
  if (!isGatewayError(error, 'postgres_unavailable')) return error;
  const message = `${error.message}: is the stack in ${dataDir} running (nightshift dev)?`;
  return new GatewayError('postgres_unavailable', message, { cause: error });
}
