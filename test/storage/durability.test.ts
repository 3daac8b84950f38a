import fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { openAppendFile } from '../../storage/journal/append-file';
import { createFilesystemJournal } from '../../storage/journal/filesystem-journal';
import { openFilesystemStore } from '../../storage/objects/filesystem';
import {
  objectPath,
  objectsFolder,
  temporaryFolder,
} from '../../storage/objects/filesystem-layout';
import { readOrCreateStoreId } from '../../storage/objects/store-id';
import { DiskTrace, handlePrototype } from './disk-trace';
import { append, SCOPE } from './journal/fixtures';

let root: string;
let path: string;
let trace: DiskTrace;

beforeEach(async () => {
  root = await fs.mkdtemp(join(tmpdir(), 'nightshift-durability-'));
  path = join(root, 'store');
  trace = await DiskTrace.start(root);
});
afterEach(async () => {
  trace.stop();
  await fs.rm(root, { recursive: true, force: true });
});

/** A store whose folders are durable already; the trace starts after it is opened. */
async function openStore() {
  const store = await openFilesystemStore({ path });
  trace.events.length = 0;
  return store;
}

async function* pieces() {
  for (const piece of ['one ', 'two ', 'three']) yield Buffer.from(piece);
}

describe('a power cut loses nothing of', () => {
  it.each([
    ['given whole', () => Buffer.from('answer')],
    ['given in pieces', pieces],
  ])('an object that was put, %s', async (_how, body) => {
    const store = await openStore();
    await store.putIfAbsent('a/b/c', body());
    expect(trace.lost(objectPath(path, 'a/b/c'))).toEqual([]);
    expect(trace.events).toEqual([
      'datasync store/tmp/*',
      'link store/objects/a/b/c',
      'sync store/objects/a/b',
      // The folders are new, so their names are synced too.
      'sync store/objects/a',
      'sync store/objects',
    ]);
  });

  it('a large object, which is also synced while it is written', async () => {
    const store = await openStore();
    const piece = Buffer.alloc(8 * 1024 * 1024);
    let given = 0;
    const large = async function* () {
      // Until the first sync in the background has ended.
      while (trace.events.length === 0 && given < 64) yield piece.fill(++given);
      yield Buffer.from('the end');
    };
    await store.putIfAbsent('a/large', large());
    expect(trace.lost(objectPath(path, 'a/large'))).toEqual([]);
    const syncs = trace.events.filter((event) => event === 'datasync store/tmp/*');
    expect(syncs.length).toBeGreaterThan(1);
  });

  it('a large object, because it is not made if a sync on the way fails', async () => {
    const store = await openStore();
    const handles = await handlePrototype(root);
    const sync = jest.spyOn(handles, 'datasync').mockRejectedValueOnce(new Error('EIO'));
    const pieces = Array.from({ length: 5 }, () => Buffer.alloc(8 * 1024 * 1024));
    const put = store.putIfAbsent('a/large', Readable.from(pieces));
    await expect(put).rejects.toMatchObject({ code: 'object_store_failed' });
    expect(sync).toHaveBeenCalledTimes(1);
    sync.mockRestore();
    expect(await store.head('a/large')).toBeNull();
  });

  it('an object that another writer has not synced yet, once a put has returned `exists`', async () => {
    const store = await openStore();
    await store.putIfAbsent('a/first', Buffer.alloc(1));
    const other = join(temporaryFolder(path), 'other');
    const taken = objectPath(path, 'a/taken');
    const file = await fs.open(other, 'wx');
    await file.write(Buffer.from('theirs'));
    await file.datasync();
    await file.close();
    await fs.link(other, taken);
    expect(trace.lost(taken)).toEqual(['name store/objects/a/taken']);
    expect(await store.putIfAbsent('a/taken', Buffer.from('ours'))).toBe('exists');
    expect(trace.lost(taken)).toEqual([]);
  });

  it('several objects that are put concurrently into new folders', async () => {
    const store = await openStore();
    const keys = Array.from({ length: 12 }, (_, i) => `x/y/${i % 3}/${i}`);
    await Promise.all(
      keys.map(async (key) => {
        await store.putIfAbsent(key, Buffer.from(key));
        expect(trace.lost(objectPath(path, key))).toEqual([]);
      }),
    );
  });

  it('an object beside a segment whose folders are not synced yet', async () => {
    const store = await openStore();
    const segment = await openAppendFile(objectPath(path, 'batches/b/journal/m/s.seg'));
    await store.putIfAbsent('batches/b/manifest.json', Buffer.from('{}'));
    expect(trace.lost(objectPath(path, 'batches/b/manifest.json'))).toEqual([]);
    await segment.close();
  });

  it('the id of a store', async () => {
    await openStore();
    await readOrCreateStoreId(path);
    expect(trace.lost(join(path, 'store-id'))).toEqual([]);
  });

  it('the folders of a store that was opened for the first time', async () => {
    await openFilesystemStore({ path });
    expect(trace.lost(objectsFolder(path))).toEqual([]);
    expect(trace.lost(temporaryFolder(path))).toEqual([]);
  });

  it('a synced segment and the folders above it', async () => {
    const store = await openStore();
    const journal = createFilesystemJournal({ path, store });
    const writer = journal.openWriter(SCOPE, { from: 0, to: 9 });
    append(writer, 1);
    await writer.flush();
    const segment = objectPath(path, writer.frames[0]?.objectKey ?? '');
    expect(trace.lost(segment)).toContain(`bytes ${segmentName(segment)}`);
    await journal.close();
    expect(trace.lost(segment)).toEqual([]);
    const folders = foldersBetween(segment);
    expect(trace.events).toEqual([
      `datasync ${segmentName(segment)}`,
      ...folders.map((folder) => `sync ${folder}`),
    ]);
    await writer.close();
  });

  it('frames that are appended to a segment after its first sync', async () => {
    const store = await openStore();
    const journal = createFilesystemJournal({ path, store });
    const writer = journal.openWriter(SCOPE, { from: 0, to: 9 });
    for (const offset of [1, 2, 3]) {
      append(writer, offset);
      await writer.flush();
      const segment = objectPath(path, writer.frames[0]?.objectKey ?? '');
      expect(trace.lost(segment)).not.toEqual([]);
      await journal.close();
      expect(trace.lost(segment)).toEqual([]);
    }
    await writer.close();
    await journal.close();
    const syncs = trace.events.filter((event) => event.startsWith('datasync'));
    // Names are synced once, bytes in each round that follows an append.
    expect(syncs).toHaveLength(3);
    expect(trace.events.length - syncs.length).toBe(
      foldersBetween(objectPath(path, writer.frames[0]?.objectKey ?? '')).length,
    );
  });

  it('a segment whose writer has closed before the sync round', async () => {
    const store = await openStore();
    const journal = createFilesystemJournal({ path, store });
    const writer = journal.openWriter(SCOPE, { from: 0, to: 9 });
    append(writer, 1);
    await writer.close();
    await journal.close();
    expect(trace.lost(objectPath(path, writer.frames[0]?.objectKey ?? ''))).toEqual([]);
  });

  it('a seal', async () => {
    const store = await openStore();
    const journal = createFilesystemJournal({ path, store });
    const writer = journal.openWriter(SCOPE, { from: 0, to: 1 });
    append(writer, 1);
    await writer.close();
    const { key } = await journal.writeSeal(SCOPE, { from: 0, to: 1 }, writer.frames);
    expect(trace.lost(objectPath(path, key))).toEqual([]);
    await journal.close();
  });
});

it('never takes over an existing segment', async () => {
  const segment = join(root, 'segment');
  const file = await openAppendFile(segment);
  await file.append(Buffer.from('frames'));
  await expect(openAppendFile(segment)).rejects.toMatchObject({ code: 'EEXIST' });
  await file.close();
  expect(await fs.readFile(segment, 'utf8')).toBe('frames');
});

it('writes an object whole although the disk takes it piece by piece', async () => {
  const store = await openStore();
  trace.stop();
  type Write = (this: unknown, bytes: Buffer, from: number, length: number) => unknown;
  const prototype: unknown = await handlePrototype(root);
  const handles = prototype as { write: Write };
  const { write } = handles;
  const spy = jest.spyOn(handles, 'write').mockImplementation(function (this: unknown, ...args) {
    const [bytes, from, length] = args;
    return write.call(this, bytes, from, Math.min(length, 7));
  });
  const body = Buffer.from('more than seven bytes in one piece');
  await store.putIfAbsent('a', body);
  spy.mockRestore();
  expect((await store.read('a')).equals(body)).toBe(true);
});

/** The segment's name as the trace shows it: without its random part. */
function segmentName(segment: string): string {
  return `store${segment.slice(path.length)}`.replace(/[0-9a-f]{16}(?=\.seg)/, '*');
}

/** Folders that contain a new name because of the segment, the lowest first. */
function foldersBetween(segment: string): string[] {
  const folders = [];
  for (let folder = dirname(segment); folder.length >= objectsFolder(path).length;) {
    folders.push(`store${folder.slice(path.length)}`);
    folder = dirname(folder);
  }
  return folders;
}
