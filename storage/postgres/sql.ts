import { DatabaseError, type Pool, type PoolClient, type QueryResultRow } from 'pg';
import { NightshiftError, isNightshiftError } from '../../core/errors';

/** Runs statements: a pool, or the client of a transaction. */
export type Database = Pool | PoolClient;

/** SQLSTATE classes and codes of transient errors: no connection, shutdown, overload, timeout, deadlock. */
const TRANSIENT = /^(08|53|57P|57014|40001|40P01|25006)/;

/**
 * Runs one statement and returns its rows.
 *
 * @throws postgres_unavailable if a retry may help: no connection, a server that shuts down or is
 *   overloaded, a timeout, a deadlock. Any other error is a fault of ours and is thrown as it is.
 */
export async function query<Row extends QueryResultRow>(
  database: Database,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  try {
    const { rows } = await database.query<Row>(text, [...values]);
    return rows;
  } catch (error) {
    throw mapped(error);
  }
}

/**
 * Runs `work` in a transaction on one connection: committed when it resolves, rolled back when it
 * throws.
 *
 * @throws postgres_unavailable; commit_unknown if the connection broke during the commit, so that it may
 *   or may not have happened; and what `work` throws
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    throw mapped(error);
  });
  let broken: Error | undefined;
  // A connection that breaks between two statements emits an error event. Without a listener that would
  // end the process.
  const onError = (error: Error): void => void (broken = error);
  client.on('error', onError);
  try {
    await query(client, 'begin');
    const result = await work(client);
    await commit(client);
    return result;
  } catch (error) {
    broken ??= await rollBack(client, error);
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/** Returns an error if the connection must be closed because of it; closing ends the transaction too. */
async function rollBack(client: PoolClient, reason: unknown): Promise<Error | undefined> {
  // The server did not answer: do not wait for it a second time.
  const isSilent = isNightshiftError(reason, 'postgres_unavailable');
  if (isSilent || isNightshiftError(reason, 'commit_unknown')) return reason;
  return client.query('rollback').then(
    () => undefined,
    (failure: Error) => failure,
  );
}

/** If the connection breaks during the commit, its outcome is unknown. */
async function commit(client: PoolClient): Promise<void> {
  try {
    await query(client, 'commit');
  } catch (cause) {
    if (!isNightshiftError(cause, 'postgres_unavailable')) throw cause;
    const message = `${cause.message}; the change may have been made`;
    throw new NightshiftError('commit_unknown', message, { cause });
  }
}

/** Text that PostgreSQL can store: NUL and lone surrogates, which model names may contain, are replaced. */
export function storable(text: string): string {
  return text.replace(/\0|\p{Surrogate}/gu, '\uFFFD');
}

function mapped(error: unknown): unknown {
  if (!isTransient(error)) return error;
  const message = `Postgres does not answer: ${error.message}`;
  return new NightshiftError('postgres_unavailable', message, { cause: error });
}

/** The server's errors carry an SQLSTATE, the system's an `E…` code, the driver's own only a text. */
function isTransient(error: unknown): error is { message: string } {
  if (error instanceof NightshiftError || typeof error !== 'object' || error === null) return false;
  if (!('message' in error) || typeof error.message !== 'string') return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (error instanceof DatabaseError) return TRANSIENT.test(code ?? '');
  if (code !== null) return /^E[A-Z]+$/.test(code);
  return /connect|terminat|timeout|closed/i.test(error.message);
}
