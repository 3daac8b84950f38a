import type { Logger } from '../../../platform/logger';
import type { PageDisk } from './page-file';
import { PAGE_BYTES } from './pages';

/** Bytes that may wait to be written to the disk; what comes beyond is not cached. */
const MAX_PENDING_BYTES = 32 * 1024 * 1024;
/** How long a disk that failed a write is not written to, or not filled further. */
const FAILED_DISK_PAUSE_MS = 60_000;

interface Slot {
  readonly number: number;
  /** False until a write has succeeded: the disk may have no space for it. */
  isProven: boolean;
}

interface Page {
  readonly slot: Slot;
  /** The slot behind these bytes may hold those of an older page. */
  readonly byteLength: number;
  /** Reads that run now; the slot must not be given to another page meanwhile. */
  readers: number;
}

/**
 * The pages on the disk by name, least recently used first. Pages are immutable: a name always stands for
 * the same bytes. A disk that fails only makes pages disappear.
 */
export class PageTable {
  readonly #disk: PageDisk;
  readonly #logger: Pick<Logger, 'warn'> | undefined;
  readonly #pages = new Map<string, Page>();
  readonly #freeSlots: Slot[] = [];
  /** Slots from this number on were never used. */
  #unusedSlot = 0;
  #pendingBytes = 0;
  /** Until then nothing is written: the disk has failed. */
  #failedUntilMs = 0;
  /** Until then only proven slots are used: the disk is full. */
  #fullUntilMs = 0;
  #isClosed = false;

  constructor(disk: PageDisk, logger?: Pick<Logger, 'warn'>) {
    this.#disk = disk;
    this.#logger = logger;
  }

  /** Whether it can keep nothing now, so that fetching more than a caller asked for would be wasted. */
  get isOff(): boolean {
    if (this.#disk.slots === 0 || performance.now() < this.#failedUntilMs) return true;
    return this.#isFull && this.#pages.size === 0;
  }

  has(name: string): boolean {
    return this.#pages.has(name);
  }

  /**
   * How many of the named pages are there in slots behind each other, so that they can be read together. All
   * but the last are whole, because an object goes on behind them.
   */
  runLength(names: readonly string[]): number {
    const first = this.#pages.get(names[0] ?? '');
    if (first === undefined) return 0;
    const isNext = (name: string, i: number): boolean =>
      this.#pages.get(name)?.slot.number === first.slot.number + i;
    const end = names.findIndex((name, i) => !isNext(name, i));
    return end < 0 ? names.length : end;
  }

  /**
   * Fills `into` from byte `at` of the first of these pages, which must be a run. False if a page is not
   * there, cannot be read, or if the last one ends before `into` is full.
   */
  async read(names: readonly string[], at: number, into: Buffer): Promise<boolean> {
    const pages = names.map((name) => this.#use(name)).filter((page) => page !== undefined);
    const first = pages[0];
    const last = pages.at(-1);
    if (first === undefined || last === undefined || pages.length < names.length) return false;
    const end = (pages.length - 1) * PAGE_BYTES + last.byteLength;
    if (at + into.length > end) return false;
    for (const page of pages) page.readers++;
    try {
      await this.#disk.read(first.slot.number, at, into);
      return true;
    } catch (error) {
      this.#warn(error, 'the cache of the object store cannot be read');
      // Their slots are not used again: the disk has failed there.
      names.forEach((name, i) => {
        if (this.#pages.get(name) === pages[i]) this.#pages.delete(name);
      });
      return false;
    } finally {
      for (const page of pages) page.readers--;
    }
  }

  /** The page as the most recently used one. */
  #use(name: string): Page | undefined {
    const page = this.#pages.get(name);
    if (page === undefined) return undefined;
    this.#pages.delete(name);
    this.#pages.set(name, page);
    return page;
  }

  /** Keeps a page, unless the disk fails or is behind. `bytes` must not change until this resolves. */
  async write(name: string, bytes: Buffer): Promise<void> {
    if (this.#pages.has(name) || this.isOff || this.#pendingBytes >= MAX_PENDING_BYTES) return;
    const slot = this.#takeSlot();
    if (slot === null) return;
    this.#pendingBytes += PAGE_BYTES;
    try {
      await this.#disk.write(slot.number, bytes);
      slot.isProven = true;
      if (this.#pages.has(name)) this.#freeSlots.push(slot);
      else this.#pages.set(name, { slot, byteLength: bytes.length, readers: 0 });
    } catch (error) {
      this.#freeSlots.push(slot);
      this.#onFailedWrite(slot, error);
    } finally {
      this.#pendingBytes -= PAGE_BYTES;
    }
  }

  /** Gives a page that nothing reads another name. */
  rename(name: string, to: string): void {
    const page = this.#pages.get(name);
    if (page === undefined) return;
    if (this.#pages.has(to)) return this.drop(name);
    this.#pages.delete(name);
    this.#pages.set(to, page);
  }

  /** Forgets a page that nothing reads. */
  drop(name: string): void {
    const page = this.#pages.get(name);
    if (page === undefined) return;
    this.#pages.delete(name);
    this.#freeSlots.push(page.slot);
  }

  /** Pages are gone afterwards; reads and writes that still run may fail, which is not reported. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#failedUntilMs = Number.POSITIVE_INFINITY;
    this.#pages.clear();
    await this.#disk.close();
  }

  get #isFull(): boolean {
    return performance.now() < this.#fullUntilMs;
  }

  /** A disk that cannot take a slot for the first time is full; pages of the others can still be replaced. */
  #onFailedWrite(slot: Slot, error: unknown): void {
    const untilMs = performance.now() + FAILED_DISK_PAUSE_MS;
    if (slot.isProven) this.#failedUntilMs = Math.max(this.#failedUntilMs, untilMs);
    else this.#fullUntilMs = untilMs;
    this.#warn(error, 'the cache of the object store cannot be written');
  }

  #warn(error: unknown, message: string): void {
    if (!this.#isClosed) this.#logger?.warn({ err: error }, message);
  }

  /** A free slot, or that of the least recently used page; null if there is none. */
  #takeSlot(): Slot | null {
    const usable = this.#isFull ? ({ isProven }: Slot) => isProven : () => true;
    const free = this.#freeSlots.findLastIndex(usable);
    if (free >= 0) return this.#freeSlots.splice(free, 1)[0] ?? null;
    if (this.#unusedSlot < this.#disk.slots && !this.#isFull) {
      return { number: this.#unusedSlot++, isProven: false };
    }
    for (const [name, page] of this.#pages) {
      if (page.readers > 0) continue;
      this.#pages.delete(name);
      return page.slot;
    }
    return null;
  }
}
