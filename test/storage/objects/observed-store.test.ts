import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import { observeStore } from '../../../storage/objects/observed-store';
import type { ObjectStore } from '../../../storage/object-store';
import { describeObjectStore } from './object-store-conformance';

let root: string;
let seen: [string, string][] = [];

async function openStore(): Promise<ObjectStore> {
  const plain = await openFilesystemStore({ path: join(root, 'store') });
  return observeStore(plain, (operation, outcome) => seen.push([operation, outcome]));
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nightshift-observed-'));
});
beforeEach(() => (seen = []));
afterAll(() => rm(root, { recursive: true, force: true }));

describe('an observed store is a store', () => describeObjectStore(openStore));

async function read(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

it('reports each operation once and passes everything through', async () => {
  const store = await openStore();
  expect(await store.putIfAbsent('a', Buffer.from('hello'))).toBe('created');
  expect(await store.putIfAbsent('a', Buffer.from('other'))).toBe('exists');
  expect((await store.read('a')).toString()).toBe('hello');
  expect((await read(store.stream('a') as AsyncIterable<Buffer>)).toString()).toBe('hello');
  const reader = await store.open('a');
  expect((await reader.read(1, 3)).toString()).toBe('ell');
  await reader.close();
  expect(await store.concatenate('b', ['a', 'a'])).toBe('created');
  await store.delete('a');
  expect(seen).toEqual([
    ['store', 'success'],
    ['store', 'success'],
    ['retrieve', 'success'],
    ['retrieve', 'success'],
    ['retrieve', 'success'],
    ['store', 'success'],
    ['delete', 'success'],
  ]);
});

it('reports faults of the store, but not missing objects or bodies that break off', async () => {
  const store = await openStore();
  await expect(store.read('none')).rejects.toMatchObject({ code: 'object_missing' });
  async function* broken(): AsyncGenerator<Buffer> {
    yield Buffer.from('x');
    throw new Error('client went away');
  }
  await expect(store.putIfAbsent('b', broken())).rejects.toThrow('client went away');
  await expect(store.concatenate('c', ['none'])).rejects.toMatchObject({ code: 'object_missing' });
  expect(seen).toEqual([]);
  await rename(join(root, 'store'), join(root, 'away'));
  const failed = { code: 'object_store_failed' };
  await expect(store.putIfAbsent('a', Buffer.alloc(1))).rejects.toMatchObject(failed);
  await expect(store.read('a')).rejects.toMatchObject(failed);
  await expect(read(store.stream('a') as AsyncIterable<Buffer>)).rejects.toMatchObject(failed);
  await expect(store.delete('a')).rejects.toMatchObject(failed);
  await expect(store.head('a')).rejects.toMatchObject(failed);
  await expect(store.list('a')[Symbol.asyncIterator]().next()).rejects.toMatchObject(failed);
  expect(seen).toEqual([
    ['store', 'failed'],
    ['retrieve', 'failed'],
    ['retrieve', 'failed'],
    ['delete', 'failed'],
    ['retrieve', 'failed'],
    ['retrieve', 'failed'],
  ]);
});
