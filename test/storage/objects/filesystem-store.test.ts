import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asStoreError } from '../../../storage/objects/filesystem-errors';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import { readOrCreateStoreId } from '../../../storage/objects/store-id';
import { describeObjectStore } from './object-store-conformance';

let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nightshift-store-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

describe('the filesystem store as an object store', () => {
  describeObjectStore(() => openFilesystemStore({ path: root }));
});

describe('the filesystem store', () => {
  it('removes temporary files older than a day when it opens, and no younger ones', async () => {
    const stale = join(root, 'tmp', 'stale');
    const fresh = join(root, 'tmp', 'fresh');
    await writeFile(stale, 'x');
    await writeFile(fresh, 'x');
    const twoDaysAgo = new Date(Date.now() - 48 * 3_600_000);
    await utimes(stale, twoDaysAgo, twoDaysAgo);
    await (await openFilesystemStore({ path: root })).close();
    expect(await readdir(join(root, 'tmp'))).toEqual(['fresh']);
  });

  it('leaves no temporary file after a put, won, lost or failed', async () => {
    const path = join(root, 'tidy');
    const store = await openFilesystemStore({ path });
    await store.putIfAbsent('a', Buffer.from('1'));
    await store.putIfAbsent('a', Buffer.from('2'));
    const broken = (async function* () {
      yield Buffer.from('3');
      throw new Error('gone');
    })();
    await expect(store.putIfAbsent('b', broken)).rejects.toThrow('gone');
    expect(await readdir(join(path, 'tmp'))).toEqual([]);
    expect(await readdir(join(path, 'objects'))).toEqual(['a']);
  });

  it('removes folders that a delete has emptied', async () => {
    const path = join(root, 'prune');
    const store = await openFilesystemStore({ path });
    await store.putIfAbsent('a/b/c', Buffer.alloc(1));
    await store.putIfAbsent('a/d', Buffer.alloc(1));
    await store.delete('a/b/c');
    expect(await readdir(join(path, 'objects', 'a'))).toEqual(['d']);
  });

  it('lists without reading folders beside the prefix', async () => {
    const path = join(root, 'lazy');
    const store = await openFilesystemStore({ path });
    await store.putIfAbsent('batches/one/seal', Buffer.alloc(1));
    // A file instead of a folder, so that listing it would fail.
    await writeFile(join(path, 'objects', 'batches', 'two'), '');
    const found = [];
    for await (const { key } of store.list('batches/one/')) found.push(key);
    expect(found).toEqual(['batches/one/seal']);
    await expect(store.list('../')[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'internal',
    });
  });

  it('fails with retryable errors, and reports no object missing, while its folder is unmounted', async () => {
    const path = join(root, 'unmounted');
    const store = await openFilesystemStore({ path });
    await store.putIfAbsent('a/b', Buffer.alloc(1));
    await rename(path, `${path}-away`);
    const failed = { code: 'object_store_failed', retryable: true };
    await expect(store.read('a/b')).rejects.toMatchObject(failed);
    await expect(store.head('a/b')).rejects.toMatchObject(failed);
    await expect(store.delete('a/b')).rejects.toMatchObject(failed);
    await expect(store.putIfAbsent('c', Buffer.alloc(1))).rejects.toMatchObject(failed);
    await expect(store.list('a/')[Symbol.asyncIterator]().next()).rejects.toMatchObject(failed);
    await expect(store.check()).rejects.toMatchObject(failed);
    await rename(`${path}-away`, path);
    expect(await store.head('a/b')).toEqual({ size: 1 });
  });

  it('fails its check while its files cannot be read', async () => {
    const path = join(root, 'unreadable');
    const store = await openFilesystemStore({ path });
    await readOrCreateStoreId(path);
    await store.check();
    await rm(join(path, 'store-id'));
    // Reading a folder as a file fails for every user, even root.
    await mkdir(join(path, 'store-id'));
    await expect(store.check()).rejects.toMatchObject({ code: 'object_store_failed' });
  });

  it('keeps the cause of a failure', () => {
    const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    const failed = { code: 'object_store_failed', retryable: true, cause: full };
    expect(asStoreError(full, 'write x')).toMatchObject(failed);
  });

  it('scans a file in a few buffers, and a chunk stays as it is until the next one is asked for', async () => {
    const store = await openFilesystemStore({ path: join(root, 'scanned') });
    const written = randomBytes(9 * 1024 * 1024 + 7);
    await store.putIfAbsent('a', written);
    const memory = new Set<unknown>();
    const found: Buffer[] = [];
    for await (const chunk of store.scan('a')) {
      memory.add(chunk.buffer);
      const before = Buffer.from(chunk);
      // Meanwhile the stream reads ahead: another file is opened, read and closed.
      await readFile(join(root, 'scanned', 'objects', 'a'));
      expect(chunk.equals(before)).toBe(true);
      found.push(before);
    }
    expect(Buffer.concat(found).equals(written)).toBe(true);
    // Two small first ones, and two that are used again.
    expect([found.length, memory.size]).toEqual([7, 4]);
  });

  it('keeps one random id, even if several processes create it at once', async () => {
    const path = join(root, 'identity');
    await openFilesystemStore({ path });
    const ids = await Promise.all([1, 2, 3, 4].map(() => readOrCreateStoreId(path)));
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(await readFile(join(path, 'store-id'), 'latin1')).toBe(ids[0]);
  });
});
