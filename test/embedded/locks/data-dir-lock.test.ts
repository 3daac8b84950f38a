import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dataDirHolder, lockDataDir } from '../../../embedded/locks/data-dir-lock';
import { identify } from '../../../embedded/supervision/process-identity';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-lock-'));
  file = join(folder, 'lock');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Number of a process that has just ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

describe('the lock of a data directory', () => {
  it('tells a second process which one holds it', () => {
    lockDataDir(folder);
    expect(dataDirHolder(folder)).toBe(process.pid);
    expect(() => lockDataDir(folder)).toThrow(
      expect.objectContaining({
        code: 'data_dir_in_use',
        message: expect.stringContaining(`in use by process ${process.pid}`),
      }),
    );
  });

  it('is free after its release', () => {
    lockDataDir(folder).release();
    expect(dataDirHolder(folder)).toBeNull();
    lockDataDir(folder).release();
    expect(existsSync(file)).toBe(false);
  });

  it('is taken over from a dead process', () => {
    writeFileSync(file, JSON.stringify({ pid: deadPid(), startedAt: 'boot/1' }));
    lockDataDir(folder);
    expect(dataDirHolder(folder)).toBe(process.pid);
  });

  it('is taken over from a dead process whose pid another process has now', () => {
    const own = identify(process.pid);
    writeFileSync(file, JSON.stringify({ pid: process.pid, startedAt: `${own?.startedAt}0` }));
    lockDataDir(folder);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(own);
  });

  it.each(['', '{', '{"pid":"1"}', 'null'])('is taken over if its content is %j', (text) => {
    writeFileSync(file, text);
    lockDataDir(folder);
    expect(dataDirHolder(folder)).toBe(process.pid);
  });

  it('is not removed by a late release once another process holds it', () => {
    const lock = lockDataDir(folder);
    const other = JSON.stringify({ pid: 1, startedAt: null });
    writeFileSync(file, other);
    lock.release();
    expect(readFileSync(file, 'utf8')).toBe(other);
  });

  it('leaves no other files behind', () => {
    writeFileSync(file, JSON.stringify({ pid: deadPid(), startedAt: null }));
    lockDataDir(folder).release();
    expect(existsSync(`${file}.${process.pid}`)).toBe(false);
    expect(existsSync(`${file}.stale.${process.pid}`)).toBe(false);
  });
});
