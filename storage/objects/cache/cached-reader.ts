import type { ObjectReader } from '../../object-store';
import { createWindowedReader } from '../windowed-reader';
import { BLOCK_BYTES, type CachedObject, type PageCache } from './page-cache';
import { PAGE_BYTES } from './page-file';

/** Reads after which an object that is read at random counts as read in many places. */
const FEW_READS = 3;

/**
 * An open object that is read through the cache. Whole blocks are fetched where they will be read: in a
 * small object, in front of a forward reader, and at random in an object of up to `wideBytes`, of which
 * sooner or later every line is read. Other reads fetch only their pages, because a block for each line of
 * an object that does not fit into the cache would be 1 MiB for a few kilobytes.
 */
export function createCachedReader(
  cache: PageCache,
  object: CachedObject,
  wideBytes: number,
): ObjectReader {
  let readsSoFar = 0;
  let lastPosition = Number.POSITIVE_INFINITY;
  let nextPosition = 0;
  const isWide = (isForward: boolean): boolean => {
    if (object.size <= BLOCK_BYTES || isForward) return true;
    return readsSoFar > FEW_READS && object.size <= wideBytes;
  };
  return createWindowedReader({
    size: object.size,
    readInto: async (position, into) => {
      // Windows of frames overlap: each begins with the frame that the one before has cut.
      const isForward = position > lastPosition && position < nextPosition + PAGE_BYTES;
      lastPosition = position;
      nextPosition = position + into.length;
      readsSoFar++;
      if (isForward) cache.fetchAhead(object, blockAfter(nextPosition));
      await cache.read(object, { position, into, wide: isWide(isForward) });
      return into.length;
    },
    close: () => Promise.resolve(),
  });
}

function blockAfter(position: number): number {
  return (Math.floor(position / BLOCK_BYTES) + 1) * BLOCK_BYTES;
}
