/** Size of a page of the cache, and of a slot on its disk. The last page of an object may be shorter. */
export const PAGE_BYTES = 64 * 1024;
/** Pages that share an allocation and are written together: each alone would cost a system call. */
const RUN_PAGES = 16;

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
  readonly #runBytes: number;
  readonly #spare: Buffer[] = [];
  #run: Buffer;
  #used = 0;

  /** @param bytes length of the object, if it is known */
  constructor(bytes = Number.POSITIVE_INFINITY) {
    this.#runBytes = PAGE_BYTES * Math.min(RUN_PAGES, Math.max(1, pagesFor(bytes)));
    this.#run = Buffer.allocUnsafeSlow(this.#runBytes);
  }

  add(piece: Uint8Array): CutPages {
    const pages: Buffer[] = [];
    const runs: Buffer[] = [];
    for (let done = 0; done < piece.length;) {
      const pageEnd = PAGE_BYTES * (pageOf(this.#used) + 1);
      const length = Math.min(piece.length - done, pageEnd - this.#used);
      this.#run.set(piece.subarray(done, done + length), this.#used);
      done += length;
      this.#used += length;
      if (this.#used < pageEnd) continue;
      pages.push(this.#run.subarray(pageEnd - PAGE_BYTES, pageEnd));
      if (this.#used < this.#runBytes) continue;
      runs.push(this.#run);
      this.#run = this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#runBytes);
      this.#used = 0;
    }
    return { pages, runs };
  }

  /** Takes a run back whose bytes nobody needs any more: memory that is allocated anew costs time. */
  giveBack(run: Buffer): void {
    if (run.length === this.#runBytes) this.#spare.push(run);
  }

  /** The end of the object completes its last page, which may be shorter, and its last run. */
  end(): CutPages {
    const run = this.#run.subarray(0, this.#used);
    const page = run.subarray(PAGE_BYTES * pageOf(this.#used));
    return { pages: page.length === 0 ? [] : [page], runs: run.length === 0 ? [] : [run] };
  }
}
