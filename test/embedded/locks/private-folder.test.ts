import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  readFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDataDir } from '../../../embedded/data-dir';
import { lockFile } from '../../../embedded/locks/lock-file';
import { createPortPicker } from '../../../embedded/locks/ports';
import { makePrivateFolder, privateFolder } from '../../../embedded/locks/private-folder';
import { freePort } from '../../support/free-port';

let folder: string;
let umask: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-private-'));
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
  rmSync(folder, { recursive: true });
});

const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('the private folder of a user', () => {
  it('is created with access for this user only, and reused', () => {
    const path = makePrivateFolder(join(folder, 'own'));
    expect(modeOf(path)).toBe(0o700);
    expect(makePrivateFolder(path)).toBe(path);
  });

  it('is below XDG_RUNTIME_DIR if that is private, otherwise below the temporary folder', () => {
    expect(privateFolder('claims', { XDG_RUNTIME_DIR: folder })).toBe(join(folder, 'claims'));
    const open = join(folder, 'open');
    mkdirSync(open, { mode: 0o777 });
    const other = privateFolder('nightshift-test', { XDG_RUNTIME_DIR: open });
    expect(other).toBe(join(tmpdir(), `nightshift-test-${process.getuid?.() ?? 0}`));
    rmSync(other, { recursive: true });
  });

  it('is refused if it is open to others, a link or a file', () => {
    mkdirSync(join(folder, 'open'), { mode: 0o777 });
    mkdirSync(join(folder, 'target'), { mode: 0o700 });
    symlinkSync(join(folder, 'target'), join(folder, 'link'));
    writeFileSync(join(folder, 'file'), '');
    for (const name of ['open', 'link', 'file']) {
      expect(() => makePrivateFolder(join(folder, name))).toThrow(
        'is not a private folder of this user',
      );
    }
  });
});

describe('port claims', () => {
  it('follow no link, and are not written into a folder that others can write', async () => {
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'precious');
    const claims = makePrivateFolder(join(folder, 'claims'));
    const port = await freePort();
    // The names of a claim and of a draft that an attacker could guess.
    symlinkSync(victim, join(claims, `${port}.${process.pid}`));
    symlinkSync(victim, join(claims, String(port)));
    const picker = createPortPicker(claims);
    await picker.next('127.0.0.1', port);
    picker.release();
    expect(readFileSync(victim, 'utf8')).toBe('precious');

    const open = join(folder, 'open');
    mkdirSync(open, { mode: 0o1777 });
    await createPortPicker(open).next('127.0.0.1', port);
    expect(readdirSync(open)).toEqual([]);
  });
});

it('a lock file can be read by its user only', () => {
  const lock = lockFile(join(folder, 'lock'));
  expect(lock.kind).toBe('held');
  expect(modeOf(join(folder, 'lock'))).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['lock']);
});

it('a new data directory is closed to other users with any umask', () => {
  const dir = openDataDir(join(folder, 'parent', 'data'));
  const isRoot = process.getuid?.() === 0;
  expect(modeOf(join(folder, 'parent'))).toBe(0o755);
  expect(modeOf(dir.path)).toBe(isRoot ? 0o711 : 0o700);
  for (const path of [dir.logs, dir.objects, dir.run, dir.temporal])
    expect(modeOf(path)).toBe(0o700);
  expect(modeOf(dir.passThroughKey)).toBe(0o600);
  expect(existsSync(join(dir.run, `probe.${process.pid}`))).toBe(false);
});
