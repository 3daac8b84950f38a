import { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import type { Range } from '../../../core/range';
import { keptChunks } from './kept-chunks';
import {
  endsBefore,
  fetchPages,
  pendingPage,
  readDirectly,
  type CachedObject,
  type PendingPage,
} from './page-fetch';
import { PAGE_BYTES, pageOf, pagesFor } from './pages';
import type { PageTable } from './page-table';
import { PendingPages } from './pending-pages';
import type { RandomReads } from './random-reads';
import { StagedObject } from './staged-object';

/** Fetches at the same time: enough for the bandwidth of a host. */
const MAX_FETCHES = 16;

/** One read at random. */
export interface BlockRead extends Omit<CachedRead, 'aheadPages'> {
  /** Tells how many pages each block that is fetched has. */
  readonly reads: RandomReads;
}

/** One read through the cache. */
export interface CachedRead {
  /** Inside the object, as is the end of `into`. */
  readonly position: number;
  readonly into: Buffer;
  /** Pages that a request for missing ones may fetch from the first of them on; 0: what is read alone. */
  readonly aheadPages: number;
}

/**
 * Reads of immutable objects through the pages on a local disk (docs/design/journal.md#block-cache). Pages
 * that are missing are fetched in runs, and concurrent readers of a page share one request.
 */
export class PageCache {
  readonly #table: PageTable;
  readonly #permits = new ConcurrencyLimit(MAX_FETCHES);
  readonly #pending = new PendingPages();
  #staged = 0;

  constructor(table: PageTable) {
    this.#table = table;
  }

  /**
   * Fills `into` if all bytes are on the disk, without a promise and without an allocation for each page: most reads are of
   * one line of an input. Tells `onRead` whether it could.
   */
  readCached(
    { key }: CachedObject,
    position: number,
    into: Buffer,
    onRead: (isRead: boolean) => void,
  ): void {
    this.#table.read(key, position, into, onRead);
  }

  /** Whether a read of the whole object would fetch nothing. */
  hasWhole(object: CachedObject): boolean {
    return this.#hasAll(object, { from: 0, to: object.size });
  }

  /** Fills `into`. @throws what the fetch throws; object_store_failed if the object ends before */
  async read(object: CachedObject, read: CachedRead): Promise<void> {
    if (await this.#isRead(object, read.position, read.into)) return;
    if (this.#table.isOff) return readDirectly(object, read.position, read.into);
    await this.#readParts(object, read);
  }

  /** The same for a read at random: a missing page is fetched with what is missing next to it in its aligned block. */
  async readBlocks(object: CachedObject, { position, into, reads }: BlockRead): Promise<void> {
    if (await this.#isRead(object, position, into)) return;
    if (this.#table.isOff) return readDirectly(object, position, into);
    const last = pageOf(position + into.length - 1);
    for (let page = pageOf(position); page <= last; page++) {
      if (!this.#isMissing(object, page)) continue;
      const blockPages = reads.nextBlock();
      const start = page - (page % blockPages);
      let from = page;
      while (from > start && this.#isMissing(object, from - 1)) from--;
      this.#fetch(object, { from, to: start + blockPages });
    }
    await this.#readParts(object, { position, into, aheadPages: 0 });
  }

  /**
   * Begins to fetch up to `pages` from the first missing one between `from` and `to` on. Returns whether it
   * did: none may be missing, or too many fetches run.
   */
  fetchAhead(object: CachedObject, { from, to }: Range, pages: number): boolean {
    if (this.#table.isOff || !this.#permits.hasRoom) return false;
    const last = pageOf(Math.min(to, object.size) - 1);
    for (let page = pageOf(from); page <= last; page++) {
      if (!this.#isMissing(object, page)) continue;
      this.#fetch(object, { from: page, to: page + pages });
      return true;
    }
    return false;
  }

  /** Keeps an object that was just written. Takes over `bytes`. */
  keep(key: string, bytes: Buffer): void {
    if (this.#table.isOff) return;
    for (let start = 0; start < bytes.length; start += PAGE_BYTES) {
      const page = Promise.resolve(bytes.subarray(start, start + PAGE_BYTES));
      this.#pending.add(key, pageOf(start), page);
    }
    void this.#writeRun(key, 0, bytes);
  }

  /** Passes on a whole object that is read from the store, and keeps its first `bytes`. */
  keepPassing(key: string, chunks: AsyncIterable<Buffer>, bytes: number): AsyncIterable<Buffer> {
    if (this.#table.isOff) return chunks;
    return keptChunks(chunks, { table: this.#table, key, bytes });
  }

  /**
   * Passes on the pieces of an object that is being written, and copies their pages. `keep` makes the pages
   * readable under the key, which is only right once the object has exactly these bytes.
   */
  stage(key: string, pieces: AsyncIterable<Uint8Array>): StagedObject {
    return new StagedObject(this.#table, { key, name: `${key}?${++this.#staged}`, pieces });
  }

  close(): Promise<void> {
    return this.#table.close();
  }

  /** {@link readCached} with a promise. */
  #isRead(object: CachedObject, position: number, into: Buffer): Promise<boolean> {
    return new Promise((resolve) => this.readCached(object, position, into, resolve));
  }

  /** Reads what can be read together, and fetches what is missing. */
  async #readParts(
    object: CachedObject,
    { position, into, aheadPages }: CachedRead,
  ): Promise<void> {
    const end = position + into.length;
    const pages = { from: pageOf(position), to: pageOf(end - 1) + 1 };
    const reads: Promise<void>[] = [];
    for (let page = pages.from; page < pages.to;) {
      if (this.#isMissing(object, page)) {
        this.#fetch(object, { from: page, to: Math.max(pages.to, page + aheadPages) });
      }
      const next = page + this.#readTogether(object, { from: page, to: pages.to });
      const from = Math.max(position, page * PAGE_BYTES);
      const to = Math.min(end, next * PAGE_BYTES);
      reads.push(this.#readPart(object, from, into.subarray(from - position, to - position)));
      page = next;
    }
    // All of them must have ended before the caller may use its buffer for something else.
    for (const result of await Promise.allSettled(reads)) {
      if (result.status === 'rejected') throw result.reason;
    }
  }

  /** How many pages one system call reads; 1 if the first is not on the disk yet. */
  #readTogether({ key }: CachedObject, pages: Range): number {
    if (this.#pending.has(key, pages.from)) return 1;
    return Math.max(1, this.#table.runLength(key, pages));
  }

  /** Reads a part of one pending page, or of pages that are read together. */
  async #readPart(object: CachedObject, position: number, into: Buffer): Promise<void> {
    const pending = this.#pending.get(object.key, pageOf(position));
    if (pending !== undefined) {
      const copied = (await pending).copy(into, 0, position % PAGE_BYTES);
      if (copied < into.length) throw endsBefore(object);
      return;
    }
    if (await this.#isRead(object, position, into)) return;
    await readDirectly(object, position, into);
  }

  #isMissing({ key }: CachedObject, page: number): boolean {
    return !this.#pending.has(key, page) && !this.#table.has(key, page);
  }

  #hasAll(object: CachedObject, { from, to }: Range): boolean {
    for (let page = pageOf(from); page <= pageOf(to - 1); page++) {
      if (this.#isMissing(object, page)) return false;
    }
    return true;
  }

  /** Fetches the missing pages from `wanted.from` on, up to the first one that is there. */
  #fetch(object: CachedObject, wanted: Range): void {
    const { key, size } = object;
    const last = Math.min(wanted.to, pageOf(size - 1) + 1);
    const pages: PendingPage[] = [];
    for (let page = wanted.from; page < last && this.#isMissing(object, page); page++) {
      const pending = pendingPage();
      pages.push(pending);
      this.#pending.add(key, page, pending.bytes);
    }
    const { runs } = this.#table;
    const keep = async (page: number, run: Buffer): Promise<void> => {
      await this.#writeRun(key, page, run);
      // Who awaits one of its pages copies it in this turn of the event loop.
      setImmediate(() => runs.giveBack(run));
    };
    void this.#permits.run(async () => {
      const kept = await fetchPages(object, { first: wanted.from, pages, runs, keep });
      this.#pending.remove(key, wanted.from + kept, pages.length - kept);
    });
  }

  /** Serves pages from memory until they are on the disk. */
  async #writeRun(key: string, page: number, run: Buffer): Promise<void> {
    await this.#table.write(key, page, run);
    this.#pending.remove(key, page, pagesFor(run.length));
  }
}
