/** A database whose connection breaks after a commit, before the client learns of it. */
import type { Pool, PoolClient } from 'pg';

type Connect = (callback?: unknown) => Promise<PoolClient>;

/** Makes the connection of the next transaction of `pool` break after its commit. */
export function loseNextCommit(pool: Pool): void {
  const connect = pool.connect.bind(pool) as Connect;
  const own = pool as { connect: Connect };
  own.connect = async (callback) => {
    // Single statements of the pool itself come with a callback.
    if (callback !== undefined) return connect(callback);
    own.connect = connect;
    return losingCommit(await connect());
  };
}

function losingCommit(client: PoolClient): PoolClient {
  const query = client.query.bind(client) as (text: string, values: unknown[]) => Promise<unknown>;
  const own = client as { query: unknown };
  own.query = async (text: string, values: unknown[]): Promise<unknown> => {
    const result = await query(text, values);
    if (text !== 'commit') return result;
    own.query = query;
    throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  };
  return client;
}
