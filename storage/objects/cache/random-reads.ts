/** Reads after which an object that is read at random counts as read in many places. */
const FEW_READS = 3;
/** What is fetched at first with one request, and at most: 1 MiB doubling to 8 MiB. */
export const FIRST_PAGES = 16;
const MOST_PAGES = 128;

/** Learns from all reads of an object how much of it is worth fetching around a read at random. */
export class RandomReads {
  #reads = 0;
  #blockPages = FIRST_PAGES;

  /** Notes a read, at random or forward. */
  note(): void {
    this.#reads++;
  }

  /** Whether the object is read in many places. */
  get areMany(): boolean {
    return this.#reads > FEW_READS;
  }

  /** How many pages the next block has. Each is twice as long as the one before. */
  nextBlock(): number {
    const pages = this.#blockPages;
    this.#blockPages = grown(pages);
    return pages;
  }
}

/** How many pages the next request fetches after one for so many. */
export function grown(pages: number): number {
  return Math.min(2 * pages, MOST_PAGES);
}
