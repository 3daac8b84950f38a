import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openAppendFile } from '../../../storage/journal/append-file';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import { readOrCreateStoreId } from '../../../storage/objects/store-id';

let folder: string;
let umask: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-modes-'));
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
  rmSync(folder, { recursive: true });
});

/** `path mode` of everything below a folder. */
function modesBelow(root: string): string[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return names.map((name) => {
    const found = statSync(join(root, name));
    return `${found.isDirectory() ? 'folder' : 'file'} ${(found.mode & 0o777).toString(8)}`;
  });
}

it('creates files and folders that no other user can read, with any umask', async () => {
  const path = join(folder, 'chosen', 'by', 'the', 'operator');
  const store = await openFilesystemStore({ path });
  await readOrCreateStoreId(path);
  await store.putIfAbsent('files/t/input', Buffer.from('prompts'));
  const segment = await openAppendFile(join(path, 'objects', 'batches', 'b', 'journal', 'segment'));
  await segment.append(Buffer.from('answers'));
  await segment.sync();
  await segment.close();
  await store.close();
  const modes = modesBelow(folder);
  expect(modes.filter((mode) => mode.startsWith('file'))).toHaveLength(3);
  expect(new Set(modes)).toEqual(new Set(['folder 700', 'file 600']));
});

it('keeps the mode of a folder that the operator created', async () => {
  const path = join(folder, 'made');
  mkdirSync(path, { mode: 0o750 });
  const store = await openFilesystemStore({ path });
  await store.close();
  expect(statSync(path).mode & 0o777).toBe(0o750);
});
