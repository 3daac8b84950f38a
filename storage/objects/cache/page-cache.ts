import { NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import { FetchPermits } from './fetch-permits';
import { PAGE_BYTES } from './page-file';
import type { PageTable } from './page-table';

/** Pages that one request to the store may fetch together: an aligned block of 1 MiB. */
const BLOCK_PAGES = 16;
/** Size of a block in bytes. */
export const BLOCK_BYTES = BLOCK_PAGES * PAGE_BYTES;

/** An object that is read through the cache. */
export interface CachedObject {
  readonly key: string;
  readonly size: number;
  /** Reads from the store itself. */
  fetch(range: Range): Promise<Buffer>;
}

interface Fetch {
  /** Place in the object of the first byte. */
  readonly start: number;
  readonly bytes: Promise<Buffer>;
}

/**
 * Reads of immutable objects through the pages on a local disk (docs/design/journal.md#block-cache). Pages
 * that are missing are fetched in runs, and each page by one request at a time, whoever reads it.
 */
export class PageCache {
  readonly #table: PageTable;
  readonly #permits = new FetchPermits();
  /** Pages that are being fetched, or are fetched and not on the disk yet. */
  readonly #fetches = new Map<string, Fetch>();

  constructor(table: PageTable) {
    this.#table = table;
  }

  /**
   * Fills `into` with the bytes from `position`, which must be inside the object. A `wide` read fetches the
   * whole blocks around missing pages. @throws what the fetch throws
   */
  async read(
    object: CachedObject,
    { position, into, wide }: { position: number; into: Buffer; wide: boolean },
  ): Promise<void> {
    if (this.#table.isOff) {
      const bytes = await fetchWhole(object, { from: position, to: position + into.length });
      bytes.copy(into);
      return;
    }
    const end = position + into.length;
    const pages = { from: pageOf(position), to: pageOf(end - 1) + 1 };
    const reads: Promise<void>[] = [];
    for (let page = pages.from; page < pages.to; page++) {
      const from = Math.max(position, page * PAGE_BYTES);
      const to = Math.min(end, (page + 1) * PAGE_BYTES);
      const target = into.subarray(from - position, to - position);
      if (this.#isMissing(object, page))
        this.#fetch(object, this.#runAt(object, page, wide ? null : pages));
      reads.push(this.#readPage(object, { page, from, target }));
    }
    // All of them must have ended before the caller may use its buffer for something else.
    for (const result of await Promise.allSettled(reads)) {
      if (result.status === 'rejected') throw result.reason;
    }
  }

  /** Begins to fetch the block of `position`, unless it is there or too many fetches run. */
  fetchAhead(object: CachedObject, position: number): void {
    const page = pageOf(position);
    if (position >= object.size || this.#table.isOff || !this.#permits.isFree) return;
    if (!this.#isMissing(object, page)) return;
    this.#fetch(object, this.#runAt(object, page, null));
  }

  /** Keeps an object that was just written. Takes over `bytes`. */
  keep(key: string, bytes: Buffer): void {
    if (this.#table.isOff) return;
    this.#adopt(key, { from: 0, to: Math.ceil(bytes.length / PAGE_BYTES) }, Promise.resolve(bytes));
  }

  close(): Promise<void> {
    return this.#table.close();
  }

  async #readPage(
    object: CachedObject,
    { page, from, target }: { page: number; from: number; target: Buffer },
  ): Promise<void> {
    const name = nameOf(object.key, page);
    const fetch = this.#fetches.get(name);
    if (fetch !== undefined) {
      (await fetch.bytes).copy(target, 0, from - fetch.start);
      return;
    }
    if (await this.#table.read(name, from - page * PAGE_BYTES, target)) return;
    const bytes = await fetchWhole(object, { from, to: from + target.length });
    bytes.copy(target);
  }

  #isMissing({ key }: CachedObject, page: number): boolean {
    const name = nameOf(key, page);
    return !this.#fetches.has(name) && !this.#table.has(name);
  }

  /**
   * The missing pages around `page` that one request fetches: in its block, and of those only the `wanted`
   * ones unless this is null.
   */
  #runAt(object: CachedObject, page: number, wanted: Range | null): Range {
    const block = page - (page % BLOCK_PAGES);
    const last = Math.min(block + BLOCK_PAGES, pageOf(object.size - 1) + 1, wanted?.to ?? Infinity);
    let from = page;
    let to = page + 1;
    while (to < last && this.#isMissing(object, to)) to++;
    if (wanted === null) while (from > block && this.#isMissing(object, from - 1)) from--;
    return { from, to };
  }

  #fetch(object: CachedObject, pages: Range): void {
    const start = pages.from * PAGE_BYTES;
    const range = { from: start, to: Math.min(pages.to * PAGE_BYTES, object.size) };
    const bytes = this.#permits.run(() => fetchWhole(object, range));
    this.#adopt(object.key, pages, bytes);
  }

  /** Serves the pages from memory until they are on the disk. */
  #adopt(key: string, pages: Range, bytes: Promise<Buffer>): void {
    const start = pages.from * PAGE_BYTES;
    for (let page = pages.from; page < pages.to; page++) {
      this.#fetches.set(nameOf(key, page), { start, bytes });
    }
    void this.#keepFetched(key, pages, bytes);
  }

  async #keepFetched(key: string, pages: Range, fetched: Promise<Buffer>): Promise<void> {
    // A failed fetch is an error of those who read, not of this step.
    const bytes = await fetched.catch(() => null);
    const kept: Promise<void>[] = [];
    for (let page = pages.from; page < pages.to; page++) {
      const at = (page - pages.from) * PAGE_BYTES;
      const name = nameOf(key, page);
      const forget = () => void this.#fetches.delete(name);
      if (bytes === null) forget();
      else kept.push(this.#table.write(name, bytes.subarray(at, at + PAGE_BYTES)).then(forget));
    }
    await Promise.all(kept);
  }
}

async function fetchWhole(object: CachedObject, range: Range): Promise<Buffer> {
  const bytes = await object.fetch(range);
  if (bytes.length === range.to - range.from) return bytes;
  const message = `${object.key} has ${bytes.length} bytes at ${range.from}, expected ${range.to - range.from}`;
  throw new NightshiftError('object_store_failed', message);
}

function pageOf(position: number): number {
  return Math.floor(position / PAGE_BYTES);
}

function nameOf(key: string, page: number): string {
  return `${key}#${page}`;
}
