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

/** Cuts a body into pages, with its last page at the end. The pieces pass unchanged. */
export async function* inPages(body: AsyncIterable<Uint8Array>): AsyncGenerator<PagedPiece> {
  let page = Buffer.allocUnsafeSlow(PAGE_BYTES);
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
      page = Buffer.allocUnsafeSlow(PAGE_BYTES);
      used = 0;
    }
    yield { piece, pages };
  }
  yield { piece: null, pages: used === 0 ? [] : [page.subarray(0, used)] };
}
