import { tell } from '../../../core/async/tell';
import { isNightshiftError } from '../../../core/errors';
import type { ObjectReader } from '../../object-store';
import { createWindowedReader } from '../windowed-reader';
import type { PageCache } from './page-cache';
import type { CachedObject } from './page-fetch';
import { PAGE_BYTES } from './pages';
import { FIRST_PAGES, grown, type RandomReads } from './random-reads';

/** An object of up to this size is fetched whole. */
const SMALL_BYTES = 1024 * 1024;
/** How far in front of a forward reader the next request begins: long enough for its first bytes to come. */
const AHEAD_BYTES = 512 * 1024;

/** An object for one reader, which closes it. */
export interface OpenObject {
  readonly object: CachedObject;
  /** Of all its readers in this process. */
  readonly reads: RandomReads;
  /** Called when a read finds it gone. */
  forget(): void;
  /** Called at most once. */
  close(): void;
}

/**
 * An open object that is read through the cache. More than the pages of a read are fetched where they will
 * be read: in a small object, in front of a forward reader, and around a read at random in an object of up
 * to `wideBytes`, of which sooner or later every line is read. In a larger one, a block for each line would
 * be 1 MiB for a few kilobytes.
 */
export function createCachedReader(
  cache: PageCache,
  { object, reads, forget, close }: OpenObject,
  wideBytes: number,
): ObjectReader {
  const { size } = object;
  let lastPosition = Number.POSITIVE_INFINITY;
  let nextPosition = 0;
  let runPages = FIRST_PAGES;
  const readForward = async (position: number, into: Buffer): Promise<number> => {
    const read = cache.read(object, { position, into, aheadPages: runPages });
    const ahead = { from: nextPosition, to: nextPosition + AHEAD_BYTES };
    if (cache.fetchAhead(object, ahead, runPages)) {
      runPages = grown(runPages);
    }
    await read;
    return into.length;
  };
  /** Notes a read. Returns whether it goes on behind the one before. */
  const isForward = (position: number, into: Buffer): boolean => {
    // Windows of frames overlap: each begins with the frame that the one before has cut.
    const goesOn = position > lastPosition && position < nextPosition + PAGE_BYTES;
    lastPosition = position;
    nextPosition = position + into.length;
    reads.note();
    return goesOn;
  };
  const readSomewhere = async (position: number, into: Buffer): Promise<number> => {
    const isWide = size <= SMALL_BYTES || (reads.areMany && size <= wideBytes);
    if (isWide) await cache.readBlocks(object, { position, into, reads });
    else await cache.read(object, { position, into, aheadPages: 0 });
    return into.length;
  };
  const orForget = async (read: Promise<number>): Promise<number> => {
    try {
      return await read;
    } catch (error) {
      if (isNightshiftError(error, 'object_missing')) forget();
      throw error;
    }
  };
  return createWindowedReader({
    size,
    readInto: (position, into, onRead) => {
      if (isForward(position, into)) return tell(orForget(readForward(position, into)), onRead);
      cache.readCached(object, position, into, (isRead) => {
        if (isRead) onRead(into.length, null);
        else tell(orForget(readSomewhere(position, into)), onRead);
      });
    },
    close: async () => close(),
  });
}
