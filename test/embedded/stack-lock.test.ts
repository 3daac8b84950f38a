import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { identify } from '../../embedded/process-identity';
import { lockHolder, takeLock } from '../../embedded/stack-lock';

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
  test('names its holder to whoever comes second', () => {
    takeLock(folder);
    expect(lockHolder(folder)).toBe(process.pid);
    expect(() => takeLock(folder)).toThrow(
      expect.objectContaining({
        code: 'data_dir_in_use',
        message: expect.stringContaining(`in use by process ${process.pid}`),
      }),
    );
  });

  test('is free again after its release', () => {
    takeLock(folder).release();
    expect(lockHolder(folder)).toBeNull();
    takeLock(folder).release();
    expect(existsSync(file)).toBe(false);
  });

  test('is taken over from a process that is dead', () => {
    writeFileSync(file, JSON.stringify({ pid: deadPid(), startedAt: 'boot/1' }));
    takeLock(folder);
    expect(lockHolder(folder)).toBe(process.pid);
  });

  test('is taken over from a dead process whose number another one has now', () => {
    const own = identify(process.pid);
    writeFileSync(file, JSON.stringify({ pid: process.pid, startedAt: `${own?.startedAt}0` }));
    takeLock(folder);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(own);
  });

  test.each(['', '{', '{"pid":"1"}', 'null'])('is taken over when it reads %j', (text) => {
    writeFileSync(file, text);
    takeLock(folder);
    expect(lockHolder(folder)).toBe(process.pid);
  });

  test('of somebody else is not removed by a late release', () => {
    const lock = takeLock(folder);
    const other = JSON.stringify({ pid: 1, startedAt: null });
    writeFileSync(file, other);
    lock.release();
    expect(readFileSync(file, 'utf8')).toBe(other);
  });

  test('leaves no other files behind', () => {
    writeFileSync(file, JSON.stringify({ pid: deadPid(), startedAt: null }));
    takeLock(folder).release();
    expect(existsSync(`${file}.${process.pid}`)).toBe(false);
    expect(existsSync(`${file}.stale.${process.pid}`)).toBe(false);
  });
});
