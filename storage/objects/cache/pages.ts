import type { SpareBuffers } from '../spare-buffers';

/** Size of a page of the cache, and of a slot on its disk. The last page of an object may be shorter. */
export const PAGE_BYTES = 64 * 1024;
/** Pages that share a buffer and are written together: each alone would cost a system call. */
const RUN_PAGES = 16;
/** Size of the buffers of runs. */
export const RUN_BYTES = RUN_PAGES * PAGE_BYTES;

/** Number of the page with the byte at `position`. */
export function pageOf(position: number): number {
  return Math.floor(position / PAGE_BYTES);
}

/** How many pages hold so many bytes. */
export function pagesFor(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES);
}

/** What some bytes completed. */
export interface CutPages {
  readonly pages: readonly Buffer[];
  /** Consecutive pages that share memory, which nothing else uses. All pages are in one of the runs. */
  readonly runs: readonly Buffer[];
}

/** Copies an object that passes in pieces into pages, and into runs of 1 MiB. */
export class PageCutter {
  readonly #runs: SpareBuffers;
  /** Bytes that are still to come; at least, if that is not known. */
  #left: number;
  #run: Buffer | null = null;
  #used = 0;

  /**
   * @param runs buffers of {@link RUN_BYTES}; who gets a run gives it back
   * @param bytes length of the object, if it is known
   */
  constructor(runs: SpareBuffers, bytes = Number.POSITIVE_INFINITY) {
    this.#runs = runs;
    this.#left = bytes;
  }

  add(piece: Uint8Array): CutPages {
    const pages: Buffer[] = [];
    const runs: Buffer[] = [];
    for (let done = 0; done < piece.length;) {
      const run = (this.#run ??= this.#newRun());
      const pageEnd = PAGE_BYTES * (pageOf(this.#used) + 1);
      const length = Math.min(piece.length - done, pageEnd - this.#used);
      run.set(piece.subarray(done, done + length), this.#used);
      done += length;
      this.#used += length;
      if (this.#used < pageEnd) continue;
      pages.push(run.subarray(pageEnd - PAGE_BYTES, pageEnd));
      if (this.#used < run.length) continue;
      runs.push(run);
      this.#left -= run.length;
      this.#run = null;
      this.#used = 0;
    }
    return { pages, runs };
  }

  /** The end of the object completes its last page, which may be shorter, and its last run. */
  end(): CutPages {
    const run = this.#run?.subarray(0, this.#used) ?? EMPTY;
    const page = run.subarray(PAGE_BYTES * pageOf(this.#used));
    return { pages: page.length === 0 ? [] : [page], runs: run.length === 0 ? [] : [run] };
  }

  /** A short object gets no more memory than it needs. */
  #newRun(): Buffer {
    const pages = Math.max(1, pagesFor(this.#left));
    return pages < RUN_PAGES ? Buffer.allocUnsafeSlow(pages * PAGE_BYTES) : this.#runs.take();
  }
}

const EMPTY = Buffer.alloc(0);
