/**
 * Postgres for tests. One embedded server for each Jest run, started by whichever test file asks
 * first and stopped with the run; one fresh, migrated database for each call, cloned from a template.
 *
 *     const database = useDatabase('batches', 'files');
 *
 * `database.pool` is open, `database.url` is for processes and pools of your own; end those before
 * `close()`, which removes the database, together with any connection that is left.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Client, type Pool } from 'pg';
import { migrate } from '../../storage/postgres/migrate';
import { openPool } from '../../storage/postgres/pool';
import { freePort } from './free-port';
import { oncePerRun, spawnGuarded } from './once-per-run';
import { until } from './until';

/** A database that nobody else uses. */
export interface TestDatabase {
  readonly url: string;
  readonly pool: Pool;
  /** Ends the pool and drops the database. Idempotent. */
  close(): Promise<void>;
}

/** The longest a first {@link withDatabase} may take. */
export const POSTGRES_START_MS = 60_000;

/**
 * A database for all tests of this file; `tables` are emptied before each test. Call it outside of tests and
 * hooks, and use it inside of them.
 */
export function useDatabase(...tables: string[]): Pick<TestDatabase, 'url' | 'pool'> {
  let opened: TestDatabase | undefined;
  const database = (): TestDatabase => {
    if (opened === undefined) throw new Error('the database is used outside of tests and hooks');
    return opened;
  };
  beforeAll(async () => void (opened = await withDatabase()), POSTGRES_START_MS);
  afterAll(() => opened?.close());
  if (tables.length > 0) {
    beforeEach(() => database().pool.query(`truncate ${tables.join(', ')}`));
  }
  return {
    get url() {
      return database().url;
    },
    get pool() {
      return database().pool;
    },
  };
}

const TEMPLATE = 'nightshift_template';
const PORT_TRIES = 3;

/** A fresh, migrated database in the server of this run. */
export async function withDatabase(): Promise<TestDatabase> {
  const server = await oncePerRun({
    name: 'postgres',
    start: startServer,
    startLimitMs: POSTGRES_START_MS,
  });
  const name = `test_${randomBytes(6).toString('hex')}`;
  await administer(server.port, `create database ${name} template ${TEMPLATE} strategy file_copy`);
  const url = databaseUrl(server.port, name);
  const pool = openPool(url, { max: 5 });
  let closing: Promise<void> | undefined;
  const drop = async (): Promise<void> => {
    await pool.end();
    await administer(server.port, `drop database ${name} with (force)`);
  };
  return { url, pool, close: () => (closing ??= drop()) };
}

async function startServer(folder: string): Promise<{ port: number }> {
  // Postgres runs as another user when we are root.
  fs.chmodSync(folder, 0o755);
  const port = await startOnFreePort(folder);
  await administer(port, `create database ${TEMPLATE}`);
  const pool = openPool(databaseUrl(port, TEMPLATE), { max: 1 });
  try {
    await migrate(pool);
  } finally {
    await pool.end();
  }
  await until(() => isUnused(port, TEMPLATE), 5_000, 'the template to be free');
  return { port };
}

/** A port found free may be taken a moment later: then another one is tried, in a folder of its own. */
async function startOnFreePort(folder: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    const server = path.join(folder, String(tries));
    fs.mkdirSync(server);
    const script = path.join(__dirname, 'postgres-server.mjs');
    const log = spawnGuarded(`postgres-${tries}`, process.execPath, [script, server, String(port)]);
    const said = (): string => fs.readFileSync(log, 'utf8');
    const ended = /FATAL|failed|Error/;
    await until(() => READY.test(said()) || ended.test(said()), 30_000, 'Postgres to start', 10);
    if (READY.test(said())) return port;
    if (tries === PORT_TRIES) throw new Error(`Postgres did not start:\n${said()}`);
  }
}

const READY = /database system is ready to accept connections/;

async function isUnused(port: number, name: string): Promise<boolean> {
  const rows = await administer(
    port,
    `select 1 from pg_stat_activity where datname = '${name}' limit 1`,
  );
  return rows.length === 0;
}

async function administer(port: number, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString: databaseUrl(port, 'postgres') });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

function databaseUrl(port: number, name: string): string {
  return `postgres://postgres:postgres@127.0.0.1:${port}/${name}`;
}
