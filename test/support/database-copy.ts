import type { Pool, PoolClient } from 'pg';

/**
 * Makes `to` what `from` was at one moment, as a restored backup would be: all rows of all tables, and the
 * state of all sequences. Both have the same schema. Processes may work on `from` meanwhile.
 */
export async function copyDatabase(from: Pool, to: Pool): Promise<void> {
  const [source, target] = await Promise.all([from.connect(), to.connect()]);
  try {
    await source.query('begin isolation level repeatable read read only');
    // Rows come in any order, so foreign keys must not be checked.
    await target.query('begin; set local session_replication_role = replica');
    for (const table of await namesOf(source, 'tables')) await copyTable(source, target, table);
    for (const sequence of await namesOf(source, 'sequences')) {
      await copySequence(source, target, sequence);
    }
    await target.query('commit');
    await source.query('commit');
  } finally {
    source.release();
    target.release();
  }
}

async function namesOf(client: PoolClient, kind: 'tables' | 'sequences'): Promise<string[]> {
  const column = kind === 'tables' ? 'tablename' : 'sequencename';
  const text = `select ${column} as name from pg_${kind} where schemaname = 'public'`;
  return (await client.query<{ name: string }>(text)).rows.map(({ name }) => name);
}

async function copyTable(source: PoolClient, target: PoolClient, table: string): Promise<void> {
  const all = `select coalesce(json_agg(t), '[]')::text as rows from ${table} t`;
  const { rows } = await source.query<{ rows: string }>(all);
  await target.query(`delete from ${table}`);
  await target.query(
    `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1)`,
    [rows[0]?.rows],
  );
}

async function copySequence(source: PoolClient, target: PoolClient, name: string): Promise<void> {
  const state = `select last_value, is_called from ${name}`;
  const { rows } = await source.query<{ last_value: string; is_called: boolean }>(state);
  const [row] = rows;
  await target.query('select setval($1, $2, $3)', [name, row?.last_value, row?.is_called]);
}
