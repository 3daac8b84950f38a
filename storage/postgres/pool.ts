import { Pool, TypeOverrides, types } from 'pg';
import type { Logger } from '../../platform/logger';

export interface PoolOptions {
  /** Most connections at a time. */
  readonly max?: number;
  /**
   * The server ends statements that take longer; a server that does not answer even then is given up
   * {@link GIVE_UP_MS} later, with its connection. 0 is without limit.
   */
  readonly statementTimeoutMs?: number;
  /** Longest wait for a connection, free or new. */
  readonly connectTimeoutMs?: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName?: string;
  /** Hears of idle connections that broke; they are replaced by themselves. */
  readonly logger?: Logger;
}

/** What an answer may need beyond the time that its statement may take. */
const GIVE_UP_MS = 1_000;

/**
 * A pool of connections to the read model. `bigint` columns arrive as numbers: ours hold seconds,
 * bytes, counts and positions, all far below 2^53. Connects lazily; the caller ends it.
 */
export function openPool(url: string, options: PoolOptions = {}): Pool {
  const overrides = new TypeOverrides();
  overrides.setTypeParser(types.builtins.INT8, Number);
  const { statementTimeoutMs = 30_000 } = options;
  const pool = new Pool({
    connectionString: url,
    max: options.max ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    statement_timeout: statementTimeoutMs,
    ...(statementTimeoutMs === 0 ? {} : { query_timeout: statementTimeoutMs + GIVE_UP_MS }),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: options.applicationName ?? 'nightshift',
    types: overrides,
  });
  // Without a listener a broken idle connection would end the process.
  pool.on('error', (error) => options.logger?.warn({ err: error }, 'idle connection lost'));
  return pool;
}
