import { packageRoot } from '../../../platform/package-root';
import { checkSchema, migrate } from '../../../storage/postgres/migrate';
import { openPool } from '../../../storage/postgres/pool';
import { verifyStoreIdentity } from '../../../storage/postgres/store-identity';
import { useDatabase } from '../../support/postgres';
import fs from 'node:fs';
import path from 'node:path';

const database = useDatabase();

const steps = fs
  .readdirSync(path.join(packageRoot(), 'storage/postgres/migrations'))
  .map((name) => name.replace('.sql', ''));

it('does nothing if all steps are applied', async () => {
  await expect(migrate(database.pool)).resolves.toEqual([]);
  await expect(checkSchema(database.pool)).resolves.toBeUndefined();
});

it('applies each step once, however many processes migrate at the same time', async () => {
  await database.pool.query('drop schema public cascade; create schema public');
  await expect(checkSchema(database.pool)).rejects.toMatchObject({ code: 'schema_outdated' });
  const applied = await Promise.all([1, 2, 3, 4].map(() => migrate(database.pool)));
  expect(applied.flat()).toEqual(steps);
});

it('runs on the database of a later release whose steps break nothing', async () => {
  await database.pool.query(`insert into schema_migrations (id, name) values (9999, 'later')`);
  await expect(checkSchema(database.pool)).resolves.toBeUndefined();
  await expect(migrate(database.pool)).resolves.toEqual([]);
  await database.pool.query('delete from schema_migrations where id = 9999');
});

it('refuses a database on which only a later release can run', async () => {
  const later = `insert into schema_migrations (id, name, needs) values (9999, 'contract', 9998)`;
  await database.pool.query(later);
  const refusal = { code: 'schema_newer', message: expect.stringContaining('contract') as string };
  await expect(migrate(database.pool)).rejects.toMatchObject(refusal);
  await expect(checkSchema(database.pool)).rejects.toMatchObject(refusal);
  await database.pool.query('delete from schema_migrations where id = 9999');
});

it('reads the table of steps as the first release made it', async () => {
  await database.pool.query('alter table schema_migrations drop column needs');
  await expect(checkSchema(database.pool)).resolves.toBeUndefined();
  await database.pool.query(`delete from schema_migrations where id = 10`);
  await database.pool.query(
    'alter table batches drop column restarts, drop column restarted_at, drop column overdue_ms, drop column overdue_seen_at',
  );
  await expect(migrate(database.pool)).resolves.toEqual(['0010_last_resort']);
  const { rows } = await database.pool.query('select distinct needs from schema_migrations');
  expect(rows).toEqual([{ needs: 0 }]);
});

it('gives up, and changes nothing, while a transaction holds a table that must change', async () => {
  const holder = await database.pool.connect();
  await database.pool.query('delete from schema_migrations where id = 10');
  await holder.query('begin; lock table batches in access share mode');
  await expect(migrate(database.pool, {}, 100)).rejects.toMatchObject({
    code: 'postgres_unavailable',
    message: expect.stringContaining('another transaction') as string,
  });
  await holder.query('rollback');
  holder.release();
  await database.pool.query(
    `insert into schema_migrations (id, name) values (10, '0010_last_resort')`,
  );
});

it('has only steps on which the previous release can run, unless they say what they need', () => {
  const folder = path.join(packageRoot(), 'storage/postgres/migrations');
  const breaking = /\b(drop|rename|set not null|alter column|set data type)\b/i;
  for (const step of steps) {
    const sql = fs.readFileSync(path.join(folder, `${step}.sql`), 'utf8').replace(/--.*$/gm, '');
    const text = fs.readFileSync(path.join(folder, `${step}.sql`), 'utf8');
    if (breaking.test(sql)) expect(text).toMatch(/^-- needs: \d{4}$/m);
  }
});

it('reports postgres_unavailable if no server listens', async () => {
  const pool = openPool('postgres://postgres@127.0.0.1:1/none');
  await expect(migrate(pool)).rejects.toMatchObject({
    code: 'postgres_unavailable',
    retryable: true,
  });
  await pool.end();
});

it('notes the first object store and refuses any other', async () => {
  await verifyStoreIdentity(database.pool, 'one');
  await verifyStoreIdentity(database.pool, 'one');
  await expect(verifyStoreIdentity(database.pool, 'two')).rejects.toMatchObject({
    code: 'store_mismatch',
  });
});
