import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../cli/doctor';
import { urlHost } from '../../cli/doctor-checks';
import { lockFile } from '../../embedded/lock-file';

let dataDir: string;
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'nightshift-doctor-'))));
afterEach(() => rmSync(dataDir, { recursive: true }));

function putSettings(): void {
  mkdirSync(join(dataDir, 'run'));
  const settings = {
    postgres: { url: 'postgres://u:p@127.0.0.1:1/n' },
    global_inference_gateway: { url: 'http://127.0.0.1:2' },
  };
  writeFileSync(join(dataDir, 'run', 'config.json'), JSON.stringify(settings));
}

it('looks at the stack that runs in the data directory', () => {
  putSettings();
  const lock = lockFile(join(dataDir, 'lock'));
  const { config, result } = readConfig({ dataDir });
  expect(result).toEqual({ isOk: true, text: `of the stack in ${dataDir}, pid ${process.pid}` });
  expect(config?.postgres.url).toBe('postgres://u:p@127.0.0.1:1/n');
  if (lock.kind === 'held') lock.release();
});

it('says that no stack is running there, or ever was', () => {
  expect(readConfig({ dataDir }).result.text).toContain(`no stack has run in ${dataDir}`);
  putSettings();
  expect(readConfig({ dataDir }).result.text).toContain(`no stack is running in ${dataDir}`);
});

it.each([
  ['::1', '[::1]'],
  ['::', '[::1]'],
  ['0.0.0.0', '127.0.0.1'],
  ['localhost', 'localhost'],
])('asks %s as %s', (host, asked) => expect(urlHost(host)).toBe(asked));
