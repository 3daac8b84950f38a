import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLibraryLinks } from '../../../embedded/postgres/library-links';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-links-'));
  mkdirSync(join(folder, 'lib'));
  writeFileSync(join(folder, 'lib', 'libpq.so.5.18'), 'the library');
});
afterEach(() => rmSync(folder, { recursive: true }));

function writeList(...targets: string[]): void {
  const list = targets.map((target) => ({ source: 'native/lib/libpq.so.5.18', target }));
  writeFileSync(join(folder, 'pg-symlinks.json'), JSON.stringify(list));
}

describe('the links to the libraries of PostgreSQL', () => {
  it('are created relative to their folder, so that the folder can be moved', () => {
    writeList('native/lib/libpq.so', 'native/lib/libpq.so.5');
    createLibraryLinks(folder);
    expect(readlinkSync(join(folder, 'lib', 'libpq.so.5'))).toBe('libpq.so.5.18');
    expect(readFileSync(join(folder, 'lib', 'libpq.so'), 'utf8')).toBe('the library');
  });

  it('are left as they are if they exist', () => {
    writeList('native/lib/libpq.so.5');
    writeFileSync(join(folder, 'lib', 'libpq.so.5'), 'another library');
    createLibraryLinks(folder);
    expect(readFileSync(join(folder, 'lib', 'libpq.so.5'), 'utf8')).toBe('another library');
  });

  it('are not needed if the package lists none', () => {
    expect(() => createLibraryLinks(folder)).not.toThrow();
  });

  it('are reported as an error if they cannot be created', () => {
    writeList('native/missing/libpq.so.5');
    expect(() => createLibraryLinks(folder)).toThrow('ENOENT');
  });
});
