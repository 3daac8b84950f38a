import { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import { NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import { StagedObject } from './staged-object';
import { inPages, nameOf, PAGE_BYTES, pageOf } from './pages';
import type { PageTable } from './page-table';

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
  /** Pages that are being fetched, or are fetched and not on the disk yet. */
  readonly #fetches = new Map<string, Promise<Buffer>>();
  #staged = 0;

  constructor(table: PageTable) {
    this.#table = table;
  }

  /** Fills `into`. @throws what the fetch throws; object_store_failed if the object ends before */
  async read(object: CachedObject, { position, into, aheadPages }: CachedRead): Promise<void> {
    if (this.#table.isOff) return readDirectly(object, position, into);
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
      const target = into.subarray(from - position, to - position);
      reads.push(
        this.#readPages(object, { from: page, to: next }, { position: from, into: target }),
      );
      page = next;
    }
    // All of them must have ended before the caller may use its buffer for something else.
    for (const result of await Promise.allSettled(reads)) {
      if (result.status === 'rejected') throw result.reason;
    }
  }

  /** The same for a read at random: missing pages are fetched with the aligned block around them. */
  readBlocks(object: CachedObject, position: number, into: Buffer): Promise<void> {
    const end = position + into.length;
    const blockBytes = BLOCK_PAGES * PAGE_BYTES;
    const first = this.#table.isOff ? end : position - (position % blockBytes);
    for (let at = first; at < end; at += blockBytes) {
      const wanted = { from: Math.max(at, position), to: Math.min(at + blockBytes, end) };
      if (this.#hasAll(object, wanted)) continue;
      let from = pageOf(at);
      while (!this.#isMissing(object, from)) from++;
      this.#fetch(object, { from, to: pageOf(at) + BLOCK_PAGES });
    }
    return this.read(object, { position, into, aheadPages: 0 });
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
      this.#adopt(nameOf(key, pageOf(start)), page);
    }
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

  /** How many pages one system call reads; 1 if the first is not on the disk yet. */
  #readTogether({ key }: CachedObject, { from, to }: Range): number {
    if (this.#fetches.has(nameOf(key, from))) return 1;
    return Math.max(1, this.#table.runLength(namesOf(key, { from, to })));
  }

  async #readPages(
    object: CachedObject,
    pages: Range,
    { position, into }: Pick<CachedRead, 'position' | 'into'>,
  ): Promise<void> {
    const fetch = this.#fetches.get(nameOf(object.key, pages.from));
    const at = position - pages.from * PAGE_BYTES;
    if (fetch !== undefined) {
      if ((await fetch).copy(into, 0, at) < into.length) throw endsBefore(object);
      return;
    }
    if (await this.#table.read(namesOf(object.key, pages), at, into)) return;
    await readDirectly(object, position, into);
  }

  #isMissing({ key }: CachedObject, page: number): boolean {
    const name = nameOf(key, page);
    return !this.#fetches.has(name) && !this.#table.has(name);
  }

  #hasAll(object: CachedObject, { from, to }: Range): boolean {
    for (let page = pageOf(from); page <= pageOf(to - 1); page++) {
      if (this.#isMissing(object, page)) return false;
    }
    return true;
  }

  /** Fetches the missing pages from `wanted.from` on, up to the first one that is there. */
  #fetch(object: CachedObject, wanted: Range): void {
    const last = Math.min(wanted.to, pageOf(object.size - 1) + 1);
    const fetched: PendingPage[] = [];
    for (let page = wanted.from; page < last && this.#isMissing(object, page); page++) {
      const pending = pendingPage();
      fetched.push(pending);
      this.#adopt(nameOf(object.key, page), pending.bytes);
    }
    void this.#permits.run(() => fetchPages(object, wanted.from * PAGE_BYTES, fetched));
  }

  /** Serves a page from memory until it is on the disk. A failed fetch is an error of its readers. */
  #adopt(name: string, page: Promise<Buffer>): void {
    this.#fetches.set(name, page);
    const forget = (): void => void this.#fetches.delete(name);
    void page.then((bytes) => this.#table.write(name, bytes)).then(forget, forget);
  }
}

/** A page whose bytes are awaited. */
interface PendingPage {
  readonly bytes: Promise<Buffer>;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: unknown) => void;
}

function pendingPage(): PendingPage {
  let settle: Omit<PendingPage, 'bytes'> | null = null;
  const bytes = new Promise<Buffer>((resolve, reject) => (settle = { resolve, reject }));
  return { bytes, ...(settle as unknown as Omit<PendingPage, 'bytes'>) };
}

/** Reads consecutive pages with one request. Never rejects: the pages do. */
async function fetchPages(
  object: CachedObject,
  start: number,
  pages: readonly PendingPage[],
): Promise<void> {
  let done = 0;
  try {
    const to = Math.min(start + pages.length * PAGE_BYTES, object.size);
    for await (const step of inPages(object.fetch({ from: start, to }), to - start)) {
      for (const page of step.pages) pages[done++]?.resolve(page);
    }
    if (done < pages.length) throw endsBefore(object);
  } catch (error) {
    for (const page of pages.slice(done)) page.reject(error);
  }
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

function namesOf(key: string, { from, to }: Range): string[] {
  return Array.from({ length: to - from }, (_, i) => nameOf(key, from + i));
}
