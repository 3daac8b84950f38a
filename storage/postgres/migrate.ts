import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool, PoolClient } from 'pg';
import { NightshiftError } from '../../core/errors';
import { packageRoot } from '../../platform/package-root';
import { explainRefusal, type Grants, grantTo } from './grants';
import { inTransaction, query } from './sql';

/** One numbered, forward-only step of the schema. */
interface Migration {
  readonly id: number;
  readonly name: string;
  readonly file: string;
}

/** An arbitrary number that no other advisory lock of our database uses. */
const LOCK = 7_205_113_001;

/**
 * Brings the schema to this version: applies the missing steps of `storage/postgres/migrations` in one
 * transaction, and grants the roles in `grants` the privileges that they need, also on new tables. If
 * several processes call it at once, one migrates and the others wait
 * (docs/design/read-model.md#migrations).
 *
 * @returns names of the steps applied now
 * @throws schema_newer if a later version of Nightshift has migrated this database
 * @throws config_invalid if a role of `grants` does not exist
 * @throws postgres_unavailable
 */
export async function migrate(pool: Pool, grants: Grants = {}): Promise<string[]> {
  const known = await readMigrations();
  return inTransaction(pool, async (client) => {
    await query(client, 'select pg_advisory_xact_lock($1)', [LOCK]);
    await query(
      client,
      `create table if not exists schema_migrations (
         id integer primary key, name text not null, applied_at timestamptz not null default now())`,
    );
    const missing = await missingSteps(client, known);
    for (const step of missing) await apply(client, step);
    await grantTo(client, grants);
    return missing.map((step) => step.name);
  });
}

/**
 * Checks that the schema fits this version. @throws schema_outdated, schema_newer, config_invalid if this
 * user may not read it, postgres_unavailable
 */
export async function checkSchema(pool: Pool): Promise<void> {
  const known = await readMigrations();
  const [row] = await query<{ there: boolean }>(
    pool,
    `select to_regclass('schema_migrations') is not null as there`,
  );
  const missing = row?.there === true ? await explainRefusal(missingSteps(pool, known)) : known;
  if (missing.length > 0) {
    throw new NightshiftError(
      'schema_outdated',
      `the database lacks ${missing.map((step) => step.name).join(', ')}: run nightshift migrate`,
    );
  }
}

async function missingSteps(
  database: Pool | PoolClient,
  known: readonly Migration[],
): Promise<Migration[]> {
  const rows = await query<{ id: number; name: string }>(
    database,
    'select id, name from schema_migrations order by id',
  );
  const applied = new Set(rows.map((row) => row.id));
  const newest = Math.max(0, ...known.map((step) => step.id));
  const later = rows.find((row) => row.id > newest);
  if (later !== undefined) {
    throw new NightshiftError(
      'schema_newer',
      `the database was migrated by a later version (${later.name}): start that version, or another database`,
    );
  }
  return known.filter((step) => !applied.has(step.id));
}

async function apply(client: PoolClient, step: Migration): Promise<void> {
  await query(client, await readFile(step.file, 'utf8'));
  await query(client, 'insert into schema_migrations (id, name) values ($1, $2)', [
    step.id,
    step.name,
  ]);
}

async function readMigrations(): Promise<Migration[]> {
  const folder = join(packageRoot(), 'storage', 'postgres', 'migrations');
  const files = (await readdir(folder)).filter((name) => /^\d{4}_.+\.sql$/.test(name)).sort();
  return files.map((name) => ({
    id: Number(name.slice(0, 4)),
    name: name.replace(/\.sql$/, ''),
    file: join(folder, name),
  }));
}
