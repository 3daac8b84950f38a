import { Pool, TypeOverrides, types } from 'pg';
import type { Logger } from '../../platform/logger';

export interface PoolOptions {
  /** Most connections at a time. */
  readonly max?: number;
  /**
   * The server cancels statements that take longer. If it does not answer even then, the statement fails
   * {@link GIVE_UP_MS} later and its connection is closed. 0 means no limit.
   */
  readonly statementTimeoutMs?: number;
  /** Longest wait for a connection, free or new. */
  readonly connectTimeoutMs?: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName?: string;
  /** Logs idle connections that broke; the pool replaces them. */
  readonly logger?: Logger;
}

/** Time for the server's answer after a statement was cancelled. */
const GIVE_UP_MS = 1_000;

/** A new connection takes 5 to 10 ms. Those of a process that has rested for less serve its next batch. */
const IDLE_MS = 300_000;

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
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    application_name: options.applicationName ?? 'nightshift',
    types: overrides,
  });
  // Without a listener, a broken idle connection would end the process.
  pool.on('error', (error) => options.logger?.warn({ err: error }, 'idle connection lost'));
  return pool;
}
