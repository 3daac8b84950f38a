import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseError, type Pool, type PoolClient } from 'pg';
import { NightshiftError } from '../../core/errors';
import { packageRoot } from '../../platform/package-root';
import { explainRefusal, type Grants, grantTo } from './grants';
import { inTransaction, query } from './sql';

/** One numbered, forward-only step of the schema. */
interface Migration {
  readonly id: number;
  readonly name: string;
  readonly sql: string;
  /** The newest migration that a release must know to run after this one; 0 if every release may run. */
  readonly needs: number;
}

/** An arbitrary number that no other advisory lock of our database uses. */
const LOCK = 7_205_113_001;
/**
 * How long a migration waits for a table. Statements of running processes queue behind it for as long, so
 * it must be shorter than their timeout of 10 s.
 */
const LOCK_TIMEOUT_MS = 5_000;

/**
 * Brings the schema to this version: applies the missing steps of `storage/postgres/migrations` in one
 * transaction, and grants the roles in `grants` the privileges that they need, also on new tables. If
 * several processes call it at once, one migrates and the others wait
 * (docs/design/read-model.md#migrations).
 *
 * @returns names of the steps applied now
 * @throws schema_newer if this release cannot run on what a later one has made of the database
 * @throws config_invalid if a role of `grants` does not exist
 * @throws postgres_unavailable, also if a long transaction holds a table that must change
 */
export async function migrate(
  pool: Pool,
  grants: Grants = {},
  lockTimeoutMs = LOCK_TIMEOUT_MS,
): Promise<string[]> {
  const known = await readMigrations();
  return inTransaction(pool, async (client) => {
    await query(client, 'select pg_advisory_xact_lock($1)', [LOCK]);
    await query(client, `set local lock_timeout = ${lockTimeoutMs}`);
    await query(client, SCHEMA_MIGRATIONS);
    const missing = await missingSteps(client, known);
    await explainLock(applyAll(client, missing));
    await grantTo(client, grants);
    return missing.map((step) => step.name);
  });
}

/**
 * Checks that this release can run on the schema. Steps of a later release are fine unless they say that
 * they break this one, so that a release can be rolled back (docs/design/read-model.md#migrations).
 * @throws schema_outdated, schema_newer, config_invalid if this user may not read it, postgres_unavailable
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

/** `needs` was added later; a table without it gets it with the next step. */
const SCHEMA_MIGRATIONS = `create table if not exists schema_migrations (
  id integer primary key, name text not null, applied_at timestamptz not null default now(),
  needs integer not null default 0)`;

async function missingSteps(
  database: Pool | PoolClient,
  known: readonly Migration[],
): Promise<Migration[]> {
  // Read through JSON, because the column `needs` may not exist yet.
  const rows = await query<{ id: number; name: string; needs: number }>(
    database,
    `select id, name, coalesce((to_jsonb(s) ->> 'needs')::integer, 0) as needs
     from schema_migrations s order by id`,
  );
  const applied = new Set(rows.map((row) => row.id));
  const newest = Math.max(0, ...known.map((step) => step.id));
  const breaking = rows.find((row) => row.needs > newest);
  if (breaking !== undefined) {
    throw new NightshiftError(
      'schema_newer',
      `the database was migrated by a later release, and this one cannot run on it (${breaking.name}): start the later release, or use another database`,
    );
  }
  return known.filter((step) => !applied.has(step.id));
}

async function applyAll(client: PoolClient, steps: readonly Migration[]): Promise<void> {
  if (steps.length === 0) return;
  await query(
    client,
    'alter table schema_migrations add column if not exists needs integer not null default 0',
  );
  for (const { id, name, sql, needs } of steps) {
    await query(client, sql);
    const note = 'insert into schema_migrations (id, name, needs) values ($1, $2, $3)';
    await query(client, note, [id, name, needs]);
  }
}

const LOCK_NOT_AVAILABLE = '55P03';

async function explainLock<T>(steps: Promise<T>): Promise<T> {
  try {
    return await steps;
  } catch (cause) {
    if (!(cause instanceof DatabaseError) || cause.code !== LOCK_NOT_AVAILABLE) throw cause;
    const message =
      'another transaction holds a table that must change. Nothing was changed. End the transaction, or try again.';
    throw new NightshiftError('postgres_unavailable', message, { cause });
  }
}

/** A step that breaks earlier releases says so in a line `-- needs: NNNN`. */
const NEEDS = /^-- needs: (\d{4})$/m;

async function readMigrations(): Promise<Migration[]> {
  const folder = join(packageRoot(), 'storage', 'postgres', 'migrations');
  const files = (await readdir(folder)).filter((name) => /^\d{4}_.+\.sql$/.test(name)).sort();
  return Promise.all(
    files.map(async (name) => {
      const sql = await readFile(join(folder, name), 'utf8');
      const needs = Number(NEEDS.exec(sql)?.[1] ?? 0);
      return { id: Number(name.slice(0, 4)), name: name.replace(/\.sql$/, ''), sql, needs };
    }),
  );
}
