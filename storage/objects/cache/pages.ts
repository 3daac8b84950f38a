/** Size of a page of the cache, and of a slot on its disk. The last page of an object may be shorter. */
export const PAGE_BYTES = 64 * 1024;

/** Number of the page with the byte at `position`. */
export function pageOf(position: number): number {
  return Math.floor(position / PAGE_BYTES);
}

/** Name of a page in the cache. */
export function nameOf(key: string, page: number): string {
  return `${key}#${page}`;
}

/** What one piece of a body completes; `piece` is null at the end of the body. */
export interface PagedPiece {
  readonly piece: Uint8Array | null;
  /** Buffers of their own. */
  readonly pages: readonly Buffer[];
}

/** Pages that share an allocation: one for each page would be much work for the garbage collector. */
const SLAB_PAGES = 16;

/**
 * Cuts a body into pages, with its last page at the end. The pieces pass unchanged. `bytes` is the length of
 * the body, if it is known.
 */
export async function* inPages(
  body: AsyncIterable<Uint8Array>,
  bytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<PagedPiece> {
  const slabBytes = PAGE_BYTES * Math.min(SLAB_PAGES, Math.ceil(bytes / PAGE_BYTES));
  let slab = Buffer.allocUnsafeSlow(Math.max(PAGE_BYTES, slabBytes));
  const nextPage = (): Buffer => {
    if (slab.length < PAGE_BYTES) slab = Buffer.allocUnsafeSlow(slabBytes);
    const next = slab.subarray(0, PAGE_BYTES);
    slab = slab.subarray(PAGE_BYTES);
    return next;
  };
  let page = nextPage();
  let used = 0;
  for await (const piece of body) {
    const pages: Buffer[] = [];
    for (let done = 0; done < piece.length;) {
      const length = Math.min(piece.length - done, PAGE_BYTES - used);
      page.set(piece.subarray(done, done + length), used);
      done += length;
      used += length;
      if (used < PAGE_BYTES) continue;
      pages.push(page);
      page = nextPage();
      used = 0;
    }
    yield { piece, pages };
  }
  yield { piece: null, pages: used === 0 ? [] : [page.subarray(0, used)] };
}
