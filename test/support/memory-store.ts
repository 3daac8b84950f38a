import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { NightshiftError } from '../../core/errors';
import type { Range } from '../../core/range';
import type { ObjectBody, ObjectReader, ObjectStore, PutResult } from '../../storage/object-store';
import { readerOf } from './reader-of';

/** An object store in memory, with its objects open to view. */
export interface MemoryStore extends ObjectStore {
  /** The objects themselves, by key: look, change and remove at will. */
  readonly objects: Map<string, Buffer>;
  /** When objects were written, Unix milliseconds: to be set for those that are to be old. */
  readonly writtenAtMs: Map<string, number>;
}

export interface MemoryStoreOptions {
  /** How many bytes `stream` hands out at a time. */
  readonly chunkBytes?: number;
}

const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/;

/** An {@link ObjectStore} whose objects live as long as it does. */
export function createMemoryStore({ chunkBytes = 65_536 }: MemoryStoreOptions = {}): MemoryStore {
  const id = randomBytes(16).toString('hex');
  const objects = new Map<string, Buffer>();
  const writtenAtMs = new Map<string, number>();
  const find = (key: string): Buffer => {
    const object = objects.get(key);
    if (object === undefined)
      throw new NightshiftError('object_missing', `there is no object ${key}`);
    return object;
  };
  const put = async (key: string, body: ObjectBody): Promise<PutResult> => {
    if (!key.split('/').every((segment) => SEGMENT.test(segment))) {
      throw new NightshiftError('internal', `not an object key: ${key}`);
    }
    const bytes = await collect(body);
    if (objects.has(key)) return 'exists';
    objects.set(key, bytes);
    writtenAtMs.set(key, Date.now());
    return 'created';
  };
  return {
    objects,
    writtenAtMs,
    putIfAbsent: put,
    concatenate: async (key, parts, inspector) => {
      const found = parts.map(find);
      found.forEach((bytes, part) => inspector?.update(bytes, part));
      inspector?.finish();
      return put(key, Buffer.concat(found));
    },
    head: async (key) => {
      const object = objects.get(key);
      return object === undefined ? null : { size: object.length };
    },
    read: async (key, range) => Buffer.from(cut(find(key), range)),
    stream: (key, range) => Readable.from(chunks(() => cut(find(key), range), chunkBytes)),
    scan: (key, { range, signal } = {}) =>
      lent(
        chunks(() => cut(find(key), range), chunkBytes),
        signal,
      ),
    open: async (key) => reader(find(key)),
    async *list(prefix, { after = '' } = {}) {
      for (const key of [...objects.keys()].sort()) {
        const object = objects.get(key);
        if (object === undefined || !key.startsWith(prefix) || key <= after) continue;
        const size = object.length;
        yield { key, size, writtenAtMs: writtenAtMs.get(key) ?? Date.now() };
      }
    },
    delete: async (key) => void objects.delete(key),
    check: async () => undefined,
    storeId: async () => id,
    removeUnfinished: async () => 0,
    close: async () => undefined,
  };
}

async function collect(body: ObjectBody): Promise<Buffer> {
  if (body instanceof Uint8Array) return Buffer.from(body);
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

function cut(object: Buffer, range: Range | undefined): Buffer {
  return range === undefined ? object : object.subarray(range.from, range.to);
}

async function* chunks(bytes: () => Buffer, chunkBytes: number): AsyncGenerator<Buffer> {
  const all = bytes();
  for (let at = 0; at < all.length; at += chunkBytes) {
    yield Buffer.from(all.subarray(at, at + chunkBytes));
  }
}

/** Shows who uses a chunk after asking for the next one. */
async function* lent(all: AsyncIterable<Buffer>, signal?: AbortSignal): AsyncGenerator<Buffer> {
  for await (const chunk of all) {
    signal?.throwIfAborted();
    yield chunk;
    chunk.fill('#');
  }
  signal?.throwIfAborted();
}

function reader(object: Buffer): ObjectReader {
  return readerOf({
    size: object.length,
    read: async (position, length, into) => {
      const bytes = object.subarray(position, position + length);
      if (into === undefined) return Buffer.from(bytes);
      return into.subarray(0, bytes.copy(into));
    },
    close: async () => undefined,
  });
}
