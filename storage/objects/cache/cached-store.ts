import { SharedValues } from '../../../core/async/shared-values';
import { isNightshiftError, NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import type { Logger } from '../../../platform/logger';
import type {
  ListedObject,
  ListOptions,
  ObjectBody,
  ObjectReader,
  ObjectStore,
  PutResult,
  ScanOptions,
} from '../../object-store';
import { createCachedReader } from './cached-reader';
import { PageCache } from './page-cache';
import type { CachedObject } from './page-fetch';
import { openPageFile, type PageDisk } from './page-file';
import { PageTable } from './page-table';
import { PAGE_BYTES } from './pages';
import { KnownSizes } from './known-sizes';
import { RandomReads } from './random-reads';

export interface CacheOptions {
  /** Space on the local disk; 0 turns the cache off. */
  readonly bytes: number;
  /** Folder of the file; without it, the folder for temporary files. */
  readonly folder?: string;
  readonly logger?: Pick<Logger, 'warn'>;
  /** Opens the file; a test passes one that fails. */
  readonly openDisk?: (bytes: number, folder?: string) => Promise<PageDisk>;
  /**
   * Whether objects of this key exist as long as anything reads them. Opening one again then needs no
   * request, and they are kept when they are written.
   */
  isLasting(key: string): boolean;
}

/** A larger object that is written whole is not copied to be kept. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024;
/** An object of up to this share of the cache is fetched in whole blocks even if it is read at random. */
const WIDE_SHARE = 4;

/**
 * The same store, whose open objects and ranges of lasting objects are read through a bounded cache on the
 * local disk (docs/design/journal.md#block-cache). Streams bypass it; a whole read uses it if all is there. A
 * disk that is full or fails costs requests to the store and never an error.
 */
export async function openCachedStore(
  store: ObjectStore,
  options: CacheOptions,
): Promise<ObjectStore> {
  const disk = await openDisk(options);
  const cache = new PageCache(new PageTable(disk, options.logger));
  const cached = new CachedStore(store, cache, options);
  return {
    ...store,
    putIfAbsent: (key, body) => cached.putIfAbsent(key, body),
    read: (key, range) => cached.read(key, range),
    scan: (key, options) => cached.scan(key, options),
    open: (key) => cached.open(key),
    list: (prefix, options) => cached.list(prefix, options),
    delete: (key) => cached.delete(key),
    close: () => cached.close(),
  };
}

/** Without a file every read is a request. That is slow, but no reason to stop a worker. */
async function openDisk(options: CacheOptions): Promise<PageDisk> {
  const { bytes, folder, logger, openDisk: open = openPageFile } = options;
  const off: PageDisk = {
    slots: 0,
    read: (_slot, _at, _into, onRead) => onRead(new Error('no cache')),
    write: () => Promise.reject(new Error('no cache')),
    close: () => Promise.resolve(),
  };
  if (bytes === 0) return off;
  return open(bytes, folder).catch((error: unknown) => {
    logger?.warn({ err: error, folder }, 'the cache of the object store is off: no file for it');
    return off;
  });
}

class CachedStore {
  readonly #store: ObjectStore;
  readonly #cache: PageCache;
  readonly #options: CacheOptions;
  readonly #wideBytes: number;
  /** Of lasting objects only: others may be deleted at any time, so who opens one that is not open asks for it. */
  readonly #sizes = new KnownSizes();
  /** While an object is open, opening it again needs no request, until one of its readers finds it gone. */
  readonly #open = new SharedValues(async (key) => {
    return { object: await this.#object(key), reads: new RandomReads() };
  });

  constructor(store: ObjectStore, cache: PageCache, options: CacheOptions) {
    this.#store = store;
    this.#cache = cache;
    this.#options = options;
    this.#wideBytes = options.bytes / WIDE_SHARE;
  }

  putIfAbsent(key: string, body: ObjectBody): Promise<PutResult> {
    if (!this.#options.isLasting(key)) return this.#store.putIfAbsent(key, body);
    if (!(body instanceof Uint8Array)) return this.#putPieces(key, body);
    if (body.length > MAX_KEPT_BYTES) return this.#store.putIfAbsent(key, body);
    return this.#putWhole(key, body);
  }

  async #putWhole(key: string, body: Uint8Array): Promise<PutResult> {
    // Copied first: the caller may reuse the bytes as soon as they are put.
    const bytes = Buffer.from(body);
    const result = await this.#store.putIfAbsent(key, body);
    if (result === 'exists') return result;
    this.#sizes.set(key, bytes.length);
    this.#cache.keep(key, bytes);
    return result;
  }

  async #putPieces(key: string, pieces: AsyncIterable<Uint8Array>): Promise<PutResult> {
    const staged = this.#cache.stage(key, pieces);
    let result: PutResult = 'exists';
    try {
      result = await this.#store.putIfAbsent(key, staged.body());
    } finally {
      if (result === 'created') this.#sizes.set(key, await staged.keep());
      else await staged.drop();
    }
    return result;
  }

  /** A range of a lasting object is read without asking for its size, because it mostly is inside. */
  async read(key: string, range?: Range): Promise<Buffer> {
    if (!this.#options.isLasting(key)) return this.#store.read(key, range);
    if (range === undefined) return this.#readWhole(key);
    const size = this.#sizes.get(key);
    const to = Math.min(range.to, size ?? Infinity);
    const into = Buffer.allocUnsafe(Math.max(0, to - range.from));
    const object = this.#fetchable(key, size ?? Math.ceil(to / PAGE_BYTES) * PAGE_BYTES);
    try {
      await this.#cache.read(object, { position: range.from, into, aheadPages: 0 });
      return into;
    } catch (error) {
      if (isNightshiftError(error, 'object_missing')) throw error;
      // The object may end before the range, or the store may be back.
      return this.#store.read(key, range);
    }
  }

  /** What this process has put needs no request. Other objects are not kept: mostly they are read once. */
  #readWhole(key: string): Promise<Buffer> {
    const size = this.#sizes.get(key);
    const isKept = size !== undefined && this.#cache.hasWhole(this.#fetchable(key, size));
    return isKept ? this.read(key, { from: 0, to: size }) : this.#store.read(key);
  }

  scan(key: string, options: ScanOptions = {}): AsyncIterable<Buffer> {
    const chunks = this.#store.scan(key, options);
    if (options.range !== undefined) return chunks;
    return this.#cache.keepPassing(key, chunks, this.#wideBytes);
  }

  async open(key: string): Promise<ObjectReader> {
    const { value, close } = await this.#open.open(key);
    const forget = (): void => this.#forget(key);
    return createCachedReader(this.#cache, { ...value, forget, close }, this.#wideBytes);
  }

  async *list(prefix: string, options?: ListOptions): AsyncGenerator<ListedObject> {
    for await (const object of this.#store.list(prefix, options)) {
      if (this.#options.isLasting(object.key)) this.#sizes.set(object.key, object.size);
      yield object;
    }
  }

  async delete(key: string): Promise<void> {
    this.#forget(key);
    await this.#store.delete(key);
  }

  /** The object is gone, or will be: who opens it next looks it up. */
  #forget(key: string): void {
    this.#sizes.delete(key);
    this.#open.forget(key);
  }

  async close(): Promise<void> {
    await this.#cache.close();
    await this.#store.close();
  }

  async #object(key: string): Promise<CachedObject> {
    const known = this.#sizes.get(key);
    if (known !== undefined) return this.#fetchable(key, known);
    const head = await this.#store.head(key);
    if (head === null) throw new NightshiftError('object_missing', `there is no object ${key}`);
    if (this.#options.isLasting(key)) this.#sizes.set(key, head.size);
    return this.#fetchable(key, head.size);
  }

  #fetchable(key: string, size: number): CachedObject {
    return { key, size, fetch: (range) => this.#store.scan(key, { range }) };
  }
}
