import { packageRoot } from '../../../platform/package-root';
import { checkSchema, migrate } from '../../../storage/postgres/migrate';
import { openPool } from '../../../storage/postgres/pool';
import { verifyStoreIdentity } from '../../../storage/postgres/store-identity';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../../support/postgres';
import fs from 'node:fs';
import path from 'node:path';

let database: TestDatabase;
beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
afterAll(() => database.close());

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

it('refuses a database of a later version', async () => {
  await database.pool.query(`insert into schema_migrations (id, name) values (9999, 'later')`);
  await expect(migrate(database.pool)).rejects.toMatchObject({ code: 'schema_newer' });
  await expect(checkSchema(database.pool)).rejects.toMatchObject({ code: 'schema_newer' });
  await database.pool.query('delete from schema_migrations where id = 9999');
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
