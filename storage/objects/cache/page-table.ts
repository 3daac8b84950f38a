import type { Range } from '../../../core/range';
import type { Logger } from '../../../platform/logger';
import { SpareBuffers } from '../spare-buffers';
import type { PageDisk } from './page-file';
import { PAGE_BYTES, pageOf, pagesFor, RUN_BYTES } from './pages';
import { inRuns, Slots, type Slot } from './slots';

/** Bytes that may wait to be written to the disk; what comes beyond is not cached. */
const MAX_PENDING_BYTES = 32 * 1024 * 1024;
/** 8 MiB in all, for fetches that follow each other. */
const MOST_SPARE_RUNS = 8;
/** How long a disk that failed a write is not written to, or not filled further. */
const FAILED_DISK_PAUSE_MS = 60_000;
/** A disk that fails does so for many pages at once; one line a minute is enough to act on. */
const WARN_EVERY_MS = 60_000;

/** The pages of one object by number. One without pages is not in the table. */
interface ObjectPages {
  key: string;
  readonly pages: Map<number, Page>;
}

interface Page {
  readonly object: ObjectPages;
  readonly number: number;
  readonly slot: Slot;
  /** Bytes of it: fewer than a slot has at the end of the object. */
  readonly length: number;
  /** Reads that run now; the slot must not be given to another page meanwhile. */
  readers: number;
}

/**
 * The pages on the disk, of which the least recently used ones are replaced. Pages are immutable: a key and a
 * number always stand for the same bytes. A disk that fails only makes pages disappear.
 */
export class PageTable {
  /** Buffers for the runs of pages that are written to it. */
  readonly runs = new SpareBuffers(RUN_BYTES, MOST_SPARE_RUNS);
  readonly #disk: PageDisk;
  readonly #logger: Pick<Logger, 'warn'> | undefined;
  readonly #objects = new Map<string, ObjectPages>();
  /** All pages, least recently used first. */
  readonly #byUse = new Set<Page>();
  readonly #slots: Slots;
  #pendingBytes = 0;
  /** Until then nothing is written: the disk has failed. */
  #failedUntilMs = 0;
  /** Until then only proven slots are used: the disk is full. */
  #fullUntilMs = 0;
  readonly #warnedMs = new Map<string, number>();
  #isClosed = false;

  constructor(disk: PageDisk, logger?: Pick<Logger, 'warn'>) {
    this.#disk = disk;
    this.#logger = logger;
    this.#slots = new Slots(disk.slots);
  }

  /** Whether it can keep nothing now, so that fetching more than a caller asked for would be wasted. */
  get isOff(): boolean {
    if (this.#disk.slots === 0 || performance.now() < this.#failedUntilMs) return true;
    return this.#isFull && this.#byUse.size === 0;
  }

  has(key: string, page: number): boolean {
    return this.#objects.get(key)?.pages.has(page) === true;
  }

  /**
   * How many of these pages, from the first on, are there in slots behind each other, so that they can be read
   * together. All but the last are whole, because an object goes on behind them.
   */
  runLength(key: string, { from, to }: Range): number {
    const pages = this.#objects.get(key)?.pages;
    const first = pages?.get(from)?.slot.number;
    if (pages === undefined || first === undefined) return 0;
    let next = from + 1;
    while (next < to && pages.get(next)?.slot.number === first + next - from) next++;
    return next - from;
  }

  /**
   * Fills `into` from byte `position` of an object with one system call, and tells `onRead` whether it could: no, at
   * once, if the bytes are not all there in slots behind each other.
   */
  read(key: string, position: number, into: Buffer, onRead: (isRead: boolean) => void): void {
    const range = { from: pageOf(position), to: pageOf(position + into.length - 1) + 1 };
    if (this.runLength(key, range) < range.to - range.from) return onRead(false);
    const pages = this.#use(key, range);
    const at = position - range.from * PAGE_BYTES;
    // Behind a shorter page, its slot has bytes of another object.
    const end = (pages.length - 1) * PAGE_BYTES + (pages.at(-1)?.length ?? 0);
    if (at + into.length > end) return onRead(false);
    this.#readRun({ pages, at, into }, onRead);
  }

  /** The pages of a range, as the most recently used ones. */
  #use(key: string, { from, to }: Range): Page[] {
    const used: Page[] = [];
    const pages = this.#objects.get(key)?.pages;
    for (let number = from; number < to; number++) {
      const page = pages?.get(number);
      if (page === undefined) continue;
      this.#byUse.delete(page);
      this.#byUse.add(page);
      used.push(page);
    }
    return used;
  }

  #readRun({ pages, at, into }: RunRead, onRead: (isRead: boolean) => void): void {
    for (const page of pages) page.readers++;
    this.#disk.read(pages[0]?.slot.number ?? 0, at, into, (error) => {
      for (const page of pages) page.readers--;
      if (error !== null) this.#onFailedRead(pages, error);
      onRead(error === null);
    });
  }

  /** Their slots are not used again: the disk has failed there. */
  #onFailedRead(pages: readonly Page[], error: unknown): void {
    this.#warn(error, 'the cache of the object store cannot be read');
    for (const page of pages) this.#remove(page);
  }

  /**
   * Keeps consecutive pages from number `first` on, or as many of them as there is space for. Keeps none if
   * the disk fails or is behind. `bytes` must not change until this resolves.
   */
  async write(key: string, first: number, bytes: Buffer): Promise<void> {
    if (this.isOff || this.#pendingBytes >= MAX_PENDING_BYTES) return;
    let next = first;
    const writes = inRuns(this.#takeSlots(pagesFor(bytes.length))).map((slots) => {
      const from = (next - first) * PAGE_BYTES;
      const run = {
        key,
        first: next,
        bytes: bytes.subarray(from, from + slots.length * PAGE_BYTES),
      };
      next += slots.length;
      return this.#writeRun(run, slots);
    });
    await Promise.all(writes);
  }

  async #writeRun({ key, first, bytes }: Run, slots: readonly Slot[]): Promise<void> {
    this.#pendingBytes += bytes.length;
    try {
      await this.#disk.write(slots[0]?.number ?? 0, bytes);
      slots.forEach((slot, i) => {
        const length = Math.min(PAGE_BYTES, bytes.length - i * PAGE_BYTES);
        this.#add(key, { number: first + i, slot, length });
      });
    } catch (error) {
      const isFull = slots.some(({ isProven }) => !isProven);
      for (const slot of slots) this.#slots.giveBack(slot);
      this.#onFailedWrite(isFull, error);
    } finally {
      this.#pendingBytes -= bytes.length;
    }
  }

  #add(key: string, page: Pick<Page, 'number' | 'slot' | 'length'>): void {
    page.slot.isProven = true;
    let object = this.#objects.get(key);
    if (object?.pages.has(page.number) === true) return this.#slots.giveBack(page.slot);
    object ??= { key, pages: new Map() };
    this.#objects.set(key, object);
    const added = { ...page, object, readers: 0 };
    object.pages.set(page.number, added);
    this.#byUse.add(added);
  }

  /** Gives the pages of an object that nothing reads another key. */
  rename(key: string, to: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) return;
    if (this.#objects.has(to)) return this.drop(key);
    this.#objects.delete(key);
    object.key = to;
    this.#objects.set(to, object);
  }

  /** Forgets the pages of an object that nothing reads. */
  drop(key: string): void {
    for (const page of this.#objects.get(key)?.pages.values() ?? []) {
      this.#remove(page);
      this.#slots.giveBack(page.slot);
    }
  }

  /** Pages are gone afterwards; reads and writes that still run may fail, which is not reported. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#failedUntilMs = Number.POSITIVE_INFINITY;
    this.#objects.clear();
    this.#byUse.clear();
    await this.#disk.close();
  }

  get #isFull(): boolean {
    return performance.now() < this.#fullUntilMs;
  }

  /** A disk that cannot take a slot for the first time is full; pages of the others can still be replaced. */
  #onFailedWrite(isFull: boolean, error: unknown): void {
    const untilMs = performance.now() + FAILED_DISK_PAUSE_MS;
    if (isFull) this.#fullUntilMs = untilMs;
    else this.#failedUntilMs = Math.max(this.#failedUntilMs, untilMs);
    this.#warn(error, 'the cache of the object store cannot be written');
  }

  #warn(error: unknown, message: string): void {
    const nowMs = performance.now();
    if (this.#isClosed || nowMs - (this.#warnedMs.get(message) ?? -Infinity) < WARN_EVERY_MS)
      return;
    this.#warnedMs.set(message, nowMs);
    this.#logger?.warn({ err: error }, message);
  }

  /** Free slots, then those of the least recently used pages; fewer than `count` if there are not so many. */
  #takeSlots(count: number): Slot[] {
    const taken: Slot[] = [];
    while (taken.length < count) {
      const slot = this.#slots.take(this.#isFull) ?? this.#replaceOne();
      if (slot === null) break;
      taken.push(slot);
    }
    return taken;
  }

  #replaceOne(): Slot | null {
    for (const page of this.#byUse) {
      if (page.readers > 0) continue;
      this.#remove(page);
      return page.slot;
    }
    return null;
  }

  #remove(page: Page): void {
    const { object, number } = page;
    this.#byUse.delete(page);
    if (object.pages.get(number) === page) object.pages.delete(number);
    if (object.pages.size === 0) this.#objects.delete(object.key);
  }
}

/** A read of pages in slots behind each other, from byte `at` of the first one on. */
interface RunRead {
  readonly pages: readonly Page[];
  readonly at: number;
  readonly into: Buffer;
}

/** Consecutive pages that are written together. */
interface Run {
  readonly key: string;
  readonly first: number;
  readonly bytes: Buffer;
}
