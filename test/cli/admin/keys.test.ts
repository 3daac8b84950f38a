import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createProgram } from '../../../cli/program';
import { createApiKeyRepository } from '../../../storage/postgres/api-keys';
import { useDatabase } from '../../support/postgres';

const database = useDatabase();
beforeEach(() => (urlInEnvironment = database.url));
afterEach(() => jest.restoreAllMocks());

/** The program. It throws instead of exiting. */
function program(): Command {
  const overridden = (command: Command): Command => {
    command.exitOverride().configureOutput({ writeErr: () => undefined });
    for (const inner of command.commands) overridden(inner);
    return command;
  };
  return overridden(createProgram());
}

let said: string;
/** The database that the environment names. */
let urlInEnvironment: string;

/** The stdout of the command; its messages are in `said`. */
async function keys(...args: string[]): Promise<string> {
  let written = '';
  jest
    .spyOn(process.stdout, 'write')
    .mockImplementation((text) => ((written += String(text)), true));
  said = '';
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => ((said += String(text)), true));
  process.env['DATABASE_URL'] = urlInEnvironment;
  try {
    await program().parseAsync(['node', 'nightshift', 'keys', ...args]);
  } finally {
    delete process.env['DATABASE_URL'];
    jest.restoreAllMocks();
  }
  return written;
}

const nowSec = () => Math.floor(Date.now() / 1000);

it('keys create makes a valid key, keys list shows it, keys revoke revokes it', async () => {
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

it('keys revoke fails for an unknown key', async () => {
  await expect(keys('revoke', 'none')).rejects.toMatchObject({ code: 'not_found' });
});

it('keys revoke reports a key that was already revoked, by its id or by the key itself', async () => {
  const key = (await keys('create')).trim();
  await keys('revoke', key);
  expect(said).toContain('is revoked');
  await database.pool.query('update api_keys set revoked_at = revoked_at - 60');
  await keys('revoke', key);
  expect(said).toMatch(/was already revoked on \d{4}-/);
  expect(said).not.toContain(key);
});

it.each([
  ['--tenant', ''],
  ['--tenant', 'a\nb'],
  ['--tenant', 'x'.repeat(257)],
  ['--name', 'a\u001b[2J'],
  ['--expires', '0s'],
  ['--expires', '1 week'],
  ['--expires', '99999999d'],
])('keys create refuses %s %j', async (flag, value) => {
  await expect(keys('create', flag, value)).rejects.toMatchObject({
    code: 'commander.invalidArgument',
  });
});

describe('nightshift keys with a data directory', () => {
  let dataDir: string;
  beforeAll(() => (dataDir = mkdtempSync(join(tmpdir(), 'nightshift-keys-'))));
  afterAll(() => rmSync(dataDir, { recursive: true }));

  it('uses the database of its stack, even if the environment names another', async () => {
    const settings = {
      postgres: { url: database.url },
      global_inference_gateway: { url: 'http://a' },
    };
    mkdirSync(join(dataDir, 'run'));
    writeFileSync(join(dataDir, 'run', 'config.json'), JSON.stringify(settings));
    urlInEnvironment = 'postgres://nobody@127.0.0.1:1/none';
    const key = (await keys('create', '--data-dir', dataDir)).trim();
    const repository = createApiKeyRepository(database.pool);
    expect(await repository.authenticate(key, nowSec())).toEqual({ tenant: 'default' });
  });

  it('fails if no stack has run in it', async () => {
    await expect(keys('list', '--data-dir', '/nowhere')).rejects.toThrow(
      'no stack has run in /nowhere',
    );
  });
});
