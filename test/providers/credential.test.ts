import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openCredential } from '../../providers/credential';

let folder: string;
beforeEach(() => (folder = mkdtempSync(path.join(tmpdir(), 'credential-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const fileOf = () => ({ path: path.join(folder, 'key'), setting: 'api_key_file' });

describe('a credential', () => {
  it('is what its file has now, and every key that was used is masked', () => {
    writeFileSync(fileOf().path, 'first-key\n');
    const credential = openCredential(fileOf());
    expect(credential.current()).toBe('first-key');
    writeFileSync(fileOf().path, 'second-key');
    expect(credential.current()).toBe('second-key');
    expect(credential.mask('first-key, second-key, first-key')).toBe('***, ***, ***');
  });

  it('keeps its last key while its file is missing or empty', () => {
    writeFileSync(fileOf().path, 'a-key');
    const credential = openCredential(fileOf());
    writeFileSync(fileOf().path, '');
    expect(credential.current()).toBe('a-key');
    rmSync(fileOf().path);
    expect(credential.current()).toBe('a-key');
  });

  it('is an error of the configuration if its file is missing at the start', () => {
    expect(() => openCredential(fileOf())).toThrow(/api_key_file: cannot read .*ENOENT/);
  });
});
