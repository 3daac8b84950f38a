import { DatabaseError, type Pool, type PoolClient, type QueryResultRow } from 'pg';
import { NightshiftError, isNightshiftError } from '../../core/errors';

/** Whatever runs a statement: a pool, or the client of a transaction. */
export type Database = Pool | PoolClient;

/** SQLSTATE classes and codes that pass by themselves: no connection, shutting down, out of resources. */
const PASSING = /^(08|53|57P|57014|40001|40P01|25006)/;

/**
 * Runs one statement and answers its rows.
 *
 * @throws postgres_unavailable where trying again later may help: no connection, a server that shuts
 *   down or is overloaded, a timeout, a deadlock. Any other fault is ours and passes as it is.
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
 * @throws postgres_unavailable; commit_unknown where nobody can tell whether it was committed; and what
 *   `work` throws
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    throw mapped(error);
  });
  let broken: Error | undefined;
  // A connection that breaks between two statements tells nobody else: unheard, it ends the process.
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

/** What the connection must be closed for, if anything: with it its transaction is over, too. */
async function rollBack(client: PoolClient, reason: unknown): Promise<Error | undefined> {
  // A server that has not answered is not waited for a second time.
  const isSilent = isNightshiftError(reason, 'postgres_unavailable');
  if (isSilent || isNightshiftError(reason, 'commit_unknown')) return reason;
  return client.query('rollback').then(
    () => undefined,
    (failure: Error) => failure,
  );
}

/** A connection that breaks under a commit takes with it what became of that. */
async function commit(client: PoolClient): Promise<void> {
  try {
    await query(client, 'commit');
  } catch (cause) {
    if (!isNightshiftError(cause, 'postgres_unavailable')) throw cause;
    const message = `${cause.message}; what was asked of it may have been done`;
    throw new NightshiftError('commit_unknown', message, { cause });
  }
}

/** Text that Postgres can keep: neither NUL nor half a surrogate pair, which a model's name may hold. */
export function storable(text: string): string {
  return text.replace(/\0|\p{Surrogate}/gu, '\uFFFD');
}

function mapped(error: unknown): unknown {
  if (!isPassing(error)) return error;
  const message = `Postgres does not answer: ${error.message}`;
  return new NightshiftError('postgres_unavailable', message, { cause: error });
}

/** The server's errors carry an SQLSTATE, the system's an `E…` code, the driver's own only a text. */
function isPassing(error: unknown): error is { message: string } {
  if (error instanceof NightshiftError || typeof error !== 'object' || error === null) return false;
  if (!('message' in error) || typeof error.message !== 'string') return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  if (error instanceof DatabaseError) return PASSING.test(code ?? '');
  if (code !== null) return /^E[A-Z]+$/.test(code);
  return /connect|terminat|timeout|closed/i.test(error.message);
}
