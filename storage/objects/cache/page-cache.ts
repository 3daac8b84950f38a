import type { Readable } from 'node:stream';
import { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import { NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import { keptStream } from './kept-stream';
import { PAGE_BYTES, PageCutter, pageOf, pagesFor, type CutPages } from './pages';
import type { PageTable } from './page-table';
import { PendingPages } from './pending-pages';
import { StagedObject } from './staged-object';

/** Fetches at the same time: enough for the bandwidth of a host. */
const MAX_FETCHES = 16;

/** An object that is read through the cache. */
export interface CachedObject {
  readonly key: string;
  /** At least the end of every read; a fetch may find the object shorter. */
  readonly size: number;
  /** Reads from the store itself. */
  fetch(range: Range): AsyncIterable<Buffer>;
}

/** One read through the cache. */
export interface CachedRead {
  /** Inside the object, as is the end of `into`. */
  readonly position: number;
  readonly into: Buffer;
  /** Pages that a request for missing ones may fetch from the first of them on; 0: what is read alone. */
  readonly aheadPages: number;
}

/** Pages of an aligned block, which random reads of a small object fetch together. */
const BLOCK_PAGES = 16;

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

  /** The same for a read at random: missing pages are fetched with the aligned block around them. */
  async readBlocks(object: CachedObject, position: number, into: Buffer): Promise<void> {
    if (await this.#isRead(object, position, into)) return;
    if (this.#table.isOff) return readDirectly(object, position, into);
    const end = position + into.length;
    const blockBytes = BLOCK_PAGES * PAGE_BYTES;
    const first = position - (position % blockBytes);
    for (let at = first; at < end; at += blockBytes) {
      const wanted = { from: Math.max(at, position), to: Math.min(at + blockBytes, end) };
      if (this.#hasAll(object, wanted)) continue;
      let from = pageOf(at);
      while (!this.#isMissing(object, from)) from++;
      this.#fetch(object, { from, to: pageOf(at) + BLOCK_PAGES });
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
  keepPassing(key: string, source: Readable, bytes: number): Readable {
    if (this.#table.isOff) return source;
    return keptStream(source, { table: this.#table, key, bytes });
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
    const keep = (page: number, run: Buffer): void => void this.#writeRun(key, page, run);
    void this.#permits.run(async () => {
      const kept = await fetchPages(object, { first: wanted.from, pages, keep });
      this.#pending.remove(key, wanted.from + kept, pages.length - kept);
    });
  }

  /** Serves pages from memory until they are on the disk. */
  async #writeRun(key: string, page: number, run: Buffer): Promise<void> {
    await this.#table.write(key, page, run);
    this.#pending.remove(key, page, pagesFor(run.length));
  }
}

/** A page whose bytes are awaited. */
interface PendingPage {
  readonly bytes: Promise<Buffer>;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: unknown) => void;
}

function pendingPage(): PendingPage {
  let resolve: PendingPage['resolve'] = () => undefined;
  let reject: PendingPage['reject'] = () => undefined;
  const bytes = new Promise<Buffer>((...settle) => ([resolve, reject] = settle));
  return { bytes, resolve, reject };
}

/** Pages that one request fetches. */
interface PageFetch {
  /** Number of the first page. */
  readonly first: number;
  readonly pages: readonly PendingPage[];
  /** Gets runs of pages as soon as they are there. */
  keep(page: number, run: Buffer): void;
}

/**
 * Reads consecutive pages with one request; returns how many of them went to `keep`. Never rejects: the pages
 * do, but for those that had come.
 */
async function fetchPages(
  object: CachedObject,
  { first, pages, keep }: PageFetch,
): Promise<number> {
  let done = 0;
  let kept = 0;
  const take = (cut: CutPages): void => {
    for (const page of cut.pages) pages[done++]?.resolve(page);
    for (const run of cut.runs) {
      keep(first + kept, run);
      kept += pagesFor(run.length);
    }
  };
  try {
    const from = first * PAGE_BYTES;
    const to = Math.min(from + pages.length * PAGE_BYTES, object.size);
    const cutter = new PageCutter(to - from);
    for await (const piece of object.fetch({ from, to })) take(cutter.add(piece));
    take(cutter.end());
    if (done < pages.length) throw endsBefore(object);
  } catch (error) {
    for (const page of pages.slice(done)) page.reject(error);
  }
  return kept;
}

async function readDirectly(object: CachedObject, position: number, into: Buffer): Promise<void> {
  let done = 0;
  const range = { from: position, to: position + into.length };
  for await (const piece of object.fetch(range)) done += piece.copy(into, done);
  if (done < into.length) throw endsBefore(object);
}

function endsBefore({ key, size }: CachedObject): NightshiftError {
  const message = `${key} is shorter than the ${size} bytes that it had`;
  return new NightshiftError('object_store_failed', message);
}
