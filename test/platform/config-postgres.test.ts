import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'pg-connection-string';
import { loadConfig, redactUrl } from '../../platform/config';
import { printConfig } from '../../platform/config-print';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-config-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const URL_OF = 'postgres://nightshift_api@db:5432/nightshift';

function load(password: string, url = URL_OF) {
  const file = join(folder, 'password');
  writeFileSync(file, password);
  const env = { DATABASE_URL: url, NIGHTSHIFT__POSTGRES__PASSWORD_FILE: file };
  return loadConfig({ env, needs: ['postgres'] });
}

it.each(['plain', 'with %41 @ / : ? # ä and blanks ', "'\\"])(
  'puts the password of a file into the URL unchanged: %s',
  (password) => {
    const { url } = load(`${password}\n`).postgres;
    expect(parse(url)).toMatchObject({ user: 'nightshift_api', password, host: 'db' });
    expect(redactUrl(url)).toBe('postgres://nightshift_api:***@db:5432/nightshift');
  },
);

it('does not print the password of password_file', () => {
  const config = load('hunter2');
  expect(config.postgres.url).toContain('hunter2');
  expect(printConfig(config)).not.toContain('hunter2');
});

it("combines password_file with the URL of libpq's variables", () => {
  writeFileSync(join(folder, 'p'), 'secret');
  const env = {
    ...{ PGHOST: 'db', PGUSER: 'me', PGDATABASE: 'n' },
    NIGHTSHIFT__POSTGRES__PASSWORD_FILE: join(folder, 'p'),
  };
  expect(loadConfig({ env, needs: [] }).postgres.url).toBe('postgres://me:secret@db:5432/n');
});

it.each([
  [
    'a password in the URL too',
    'x',
    'postgres://a:b@db/n',
    'postgres.url already contains a password',
  ],
  ['an empty file', '\n', URL_OF, 'is empty: write the password into it'],
  ['a URL without a host', 'x', 'postgres:///n', 'postgres.url has no host'],
])('refuses %s', (_what, password, url, message) => {
  expect(() => load(password, url)).toThrow(message);
});

it('names the password file that cannot be read', () => {
  const file = join(folder, 'none');
  const env = { DATABASE_URL: URL_OF, NIGHTSHIFT__POSTGRES__PASSWORD_FILE: file };
  expect(() => loadConfig({ env, needs: [] })).toThrow(
    `postgres.password_file: cannot be read: ENOENT: no such file or directory, open '${file}'`,
  );
});
