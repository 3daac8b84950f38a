import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProgram } from '../../../cli/program';
import { checkSchema } from '../../../storage/postgres/migrate';
import { openPool } from '../../../storage/postgres/pool';
import { pem, startGrpcServer, type GrpcServer } from '../../client/grpc-server';
import { type ComponentRoles, createComponentRoles } from '../../support/component-roles';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../../support/postgres';

/** The command, against an empty database and a Temporal server that counts its calls. */

let database: TestDatabase;
let roles: ComponentRoles;
let temporal: GrpcServer;
let folder: string;
let said: string;

beforeAll(async () => {
  database = await withDatabase();
}, POSTGRES_START_MS);
afterAll(() => database.close());
beforeEach(async () => {
  roles = await createComponentRoles(database.pool, database.url);
  temporal = await startGrpcServer();
  folder = mkdtempSync(join(tmpdir(), 'nightshift-migrate-'));
  said = '';
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await temporal.close();
  await roles.remove();
  rmSync(folder, { recursive: true });
});

async function migrate(...flags: string[]): Promise<void> {
  const file = join(folder, 'nightshift.json');
  const tls = {
    ca_cert_file: pem('ca'),
    client_cert_file: pem('first'),
    client_key_file: pem('first-key'),
    server_name: 'temporal.test',
  };
  const settings = {
    postgres: {
      url: roles.url('nightshift_migrate'),
      grants: { api: roles.name('nightshift_api') },
    },
    temporal: { address: temporal.address, namespace: 'theirs', tls },
  };
  writeFileSync(file, JSON.stringify(settings));
  await createProgram().parseAsync(['migrate', '--config', file, ...flags], { from: 'user' });
}

async function expectTables(): Promise<void> {
  const pool = openPool(roles.url('nightshift_api'), { max: 1 });
  await checkSchema(pool).finally(() => pool.end());
}

it('nightshift migrate prepares tables and namespace', async () => {
  await migrate();
  await expectTables();
  expect(temporal.calls.length).toBeGreaterThan(0);
  expect(said).toContain(`namespace theirs of ${temporal.address} is up to date`);
});

it('nightshift migrate --skip-namespace prepares tables and sends nothing to Temporal', async () => {
  await migrate('--skip-namespace');
  await expectTables();
  expect(temporal.calls).toEqual([]);
  expect(said).toContain('tables are up to date');
  expect(said).toContain(`namespace theirs of ${temporal.address} was not changed`);
  expect(said).not.toContain('of-nightshift_migrate');
});
