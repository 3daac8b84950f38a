import { createProgram } from '../../cli/program';
import { createApiKeyRepository } from '../../storage/postgres/api-keys';
import { POSTGRES_START_MS, type TestDatabase, withDatabase } from '../support/postgres';

let database: TestDatabase;
beforeAll(async () => (database = await withDatabase()), POSTGRES_START_MS);
afterAll(() => database.close());
afterEach(() => jest.restoreAllMocks());

/** What the command writes to stdout. */
async function keys(...args: string[]): Promise<string> {
  let written = '';
  jest
    .spyOn(process.stdout, 'write')
    .mockImplementation((text) => ((written += String(text)), true));
  jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  process.env['DATABASE_URL'] = database.url;
  try {
    await createProgram().parseAsync(['node', 'nightshift', 'keys', ...args]);
  } finally {
    delete process.env['DATABASE_URL'];
    jest.restoreAllMocks();
  }
  return written;
}

const nowSec = () => Math.floor(Date.now() / 1000);

it('makes a key that opens the door, lists it and takes it back', async () => {
  const repository = createApiKeyRepository(database.pool);
  const key = (await keys('create', '--tenant', 'ann', '--name', 'ci', '--expires', '90d')).trim();
  expect(await repository.authenticate(key, nowSec())).toEqual({ tenant: 'ann' });
  expect(await repository.authenticate(key, nowSec() + 91 * 86_400)).toBeNull();
  const id = key.split('_')[1] ?? '';
  const listed = await keys('list', '--tenant', 'ann');
  expect(listed).toMatch(new RegExp(`^${id}  ann +ci .* valid$`, 'm'));
  expect(listed).not.toContain(key);
  expect(await keys('list', '--tenant', 'bob')).not.toContain(id);
  await keys('revoke', id);
  expect(await repository.authenticate(key, nowSec())).toBeNull();
  expect(await keys('list')).toMatch(new RegExp(`^${id} .* revoked$`, 'm'));
});

it('says so when there is no such key', async () => {
  await expect(keys('revoke', 'none')).rejects.toMatchObject({ code: 'not_found' });
});
