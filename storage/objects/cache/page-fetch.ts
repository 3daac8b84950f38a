import { NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import type { SpareBuffers } from '../spare-buffers';
import { roomOnDisk } from './room-on-disk';
import { PAGE_BYTES, PageCutter, pagesFor, type CutPages } from './pages';

/** An object that is read through the cache. */
export interface CachedObject {
  readonly key: string;
  /** At least the end of every read; a fetch may find the object shorter. */
  readonly size: number;
  /** Reads from the store itself. A piece is valid until the next one is asked for. */
  fetch(range: Range): AsyncIterable<Buffer>;
}

/** A page whose bytes are awaited. */
export interface PendingPage {
  readonly bytes: Promise<Buffer>;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: unknown) => void;
}

/** A page whose bytes have not come yet. */
export function pendingPage(): PendingPage {
  let resolve: PendingPage['resolve'] = () => undefined;
  let reject: PendingPage['reject'] = () => undefined;
  const bytes = new Promise<Buffer>((...settle) => ([resolve, reject] = settle));
  return { bytes, resolve, reject };
}

/** Pages that one request fetches. */
export interface PageFetch {
  /** Number of the first page. */
  readonly first: number;
  readonly pages: readonly PendingPage[];
  /** Buffers of `RUN_BYTES`. */
  readonly runs: SpareBuffers;
  /** Gets runs of pages as soon as they are there, and gives them back. Resolves when the disk has a run. */
  keep(page: number, run: Buffer): Promise<void>;
}

/**
 * Reads consecutive pages with one request; returns how many of them went to `keep`. Never rejects: the pages
 * do, but for those that had come.
 */
export async function fetchPages(
  object: CachedObject,
  { first, pages, runs, keep }: PageFetch,
): Promise<number> {
  let done = 0;
  let kept = 0;
  const writes: Promise<void>[] = [];
  const take = (cut: CutPages): void => {
    for (const page of cut.pages) pages[done++]?.resolve(page);
    for (const run of cut.runs) {
      writes.push(keep(first + kept, run));
      kept += pagesFor(run.length);
    }
  };
  try {
    const from = first * PAGE_BYTES;
    const to = Math.min(from + pages.length * PAGE_BYTES, object.size);
    const cutter = new PageCutter(runs, to - from);
    for await (const piece of object.fetch({ from, to })) {
      const cut = cutter.add(piece);
      take(cut);
      if (cut.runs.length > 0) await roomOnDisk(writes);
    }
    take(cutter.end());
    if (done < pages.length) throw endsBefore(object);
  } catch (error) {
    for (const page of pages.slice(done)) page.reject(error);
  }
  return kept;
}

/** Fills `into` without the cache. @throws what the fetch throws; object_store_failed if the object ends before */
export async function readDirectly(
  object: CachedObject,
  position: number,
  into: Buffer,
): Promise<void> {
  let done = 0;
  const range = { from: position, to: position + into.length };
  for await (const piece of object.fetch(range)) done += piece.copy(into, done);
  if (done < into.length) throw endsBefore(object);
}

/** The error of a read behind the end of an object. */
export function endsBefore({ key, size }: CachedObject): NightshiftError {
  const message = `${key} is shorter than the ${size} bytes that it had`;
  return new NightshiftError('object_store_failed', message);
}
