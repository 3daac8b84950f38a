import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { unpackProgram } from '../../../embedded/binaries/unpack-program';
import { tarArchive, type ArchiveEntry } from './archive-server';

let folder: string;
let cache: string;
let target: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-unpack-'));
  cache = join(folder, 'cache');
  target = join(cache, 'temporal');
  mkdirSync(cache);
});
afterEach(() => rmSync(folder, { recursive: true }));

function unpack(entries: readonly ArchiveEntry[], maxBytes?: number): Promise<void> {
  return unpackProgram(Readable.from([tarArchive(entries)]), 'temporal', target, maxBytes);
}

const missing = expect.objectContaining({ code: 'object_missing' });

describe('unpacking the program of a tar archive', () => {
  it.each(['temporal', './temporal'])('takes the file %s and makes it executable', async (path) => {
    await unpack([
      { path: 'LICENSE', text: 'x'.repeat(700) },
      { path, text: 'program' },
      { path: 'README.md', text: 'y' },
    ]);
    expect(readFileSync(target, 'utf8')).toBe('program');
    expect(statSync(target).mode & 0o777).toBe(0o755);
    expect(statSync(target).uid).toBe(process.getuid?.());
    expect(readdirSync(cache)).toEqual(['temporal']);
  });

  it.each([
    ['a symbolic link', { type: 'SymbolicLink', linkpath: '../secret' }],
    ['a hard link', { type: 'Link', linkpath: '../secret' }],
    ['a folder', { type: 'Directory' }],
  ] as const)('refuses %s under the name of the program', async (_kind, entry) => {
    writeFileSync(join(folder, 'secret'), 'theirs');
    await expect(unpack([{ path: 'temporal', ...entry }])).rejects.toEqual(missing);
    expect(readdirSync(cache)).toEqual([]);
  });

  it('does not write through a link that an earlier entry made', async () => {
    writeFileSync(join(folder, 'victim'), 'precious');
    const linkpath = join(folder, 'victim');
    await unpack([
      { path: 'temporal', type: 'SymbolicLink', linkpath },
      { path: 'temporal', text: 'program' },
    ]);
    expect(readFileSync(linkpath, 'utf8')).toBe('precious');
    expect(readFileSync(target, 'utf8')).toBe('program');
  });

  it('writes nothing outside its folder for any path in the archive', async () => {
    const paths = [join(folder, 'absolute'), '../outside', '../../temporal', 'bin/temporal'];
    await expect(unpack(paths.map((path) => ({ path, text: 'x' })))).rejects.toEqual(missing);
    expect(readdirSync(folder)).toEqual(['cache']);
    expect(readdirSync(cache)).toEqual([]);
  });

  it('refuses a program that is larger than the limit', async () => {
    const entries = [{ path: 'temporal', text: 'x'.repeat(1_001) }];
    await expect(unpack(entries, 1_000)).rejects.toEqual(missing);
    await unpack(entries, 1_001);
    expect(existsSync(target)).toBe(true);
  });

  it.each([
    ['no archive', Buffer.from('<html>'.repeat(500))],
    ['empty', Buffer.alloc(0)],
    ['cut short', tarArchive([{ path: 'temporal', text: 'y'.repeat(9_000) }]).subarray(0, -20)],
  ])('fails if the bytes are %s, and leaves no file behind', async (_kind, bytes) => {
    await expect(unpackProgram(Readable.from([bytes]), 'temporal', target)).rejects.toThrow();
    expect(readdirSync(cache)).toEqual([]);
  });
});
