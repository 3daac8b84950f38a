import { forEachConcurrently } from '../../../core/async/for-each-concurrently';
import { NightshiftError, isNightshiftError } from '../../../core/errors';
import type { ManifestSeal } from '../../../core/journal/manifest';
import { FRAME_HEADER_BYTES, frameOffset } from '../../../core/journal/frame';
import { readInt64 } from '../../../core/journal/int64';
import { hasObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../../core/journal/magic';
import {
  decodeSealTrailer,
  SEAL_INDEX_ENTRY_BYTES,
  SEAL_TRAILER_BYTES,
} from '../../../core/journal/seal';
import type { ObjectReader, ObjectStore } from '../../object-store';
import type { FrameSource } from './frame-source';

const PROBES_AT_ONCE = 16;
const LAST_BYTES = SEAL_INDEX_ENTRY_BYTES + SEAL_TRAILER_BYTES;

/**
 * Reads both ends of every seal of a manifest, to find where its frames are and which offsets they span.
 * Returns the seals that have frames, in key order. @throws object_corrupt if a seal is missing, damaged,
 * or not of the size in the manifest, object_store_failed
 */
export async function probeSeals(
  store: ObjectStore,
  seals: readonly ManifestSeal[],
): Promise<FrameSource[]> {
  const sources: (FrameSource | null)[] = new Array<FrameSource | null>(seals.length).fill(null);
  await forEachConcurrently(seals.entries(), PROBES_AT_ONCE, async ([i, seal]) => {
    sources[i] = await probeSeal(store, seal);
  });
  return sources.filter((source) => source !== null);
}

async function probeSeal(
  store: ObjectStore,
  { key, size }: ManifestSeal,
): Promise<FrameSource | null> {
  try {
    const reader = await store.open(key);
    try {
      if (reader.size !== size) throw changed(key);
      return await probe(key, reader);
    } finally {
      await reader.close();
    }
  } catch (error) {
    throw isNightshiftError(error, 'object_missing') ? changed(key, error) : error;
  }
}

async function probe(key: string, reader: ObjectReader): Promise<FrameSource | null> {
  const head = await reader.read(0, OBJECT_HEADER_BYTES + FRAME_HEADER_BYTES);
  const tail = await reader.read(Math.max(0, reader.size - LAST_BYTES), LAST_BYTES);
  const { indexPosition, frameCount } = decodeSealTrailer(tail, reader.size);
  if (!hasObjectHeader(head, MAGIC.seal)) throw changed(key);
  if (frameCount === 0) return null;
  return {
    rankKey: key,
    key,
    start: OBJECT_HEADER_BYTES,
    end: indexPosition,
    firstOffset: frameOffset(head, OBJECT_HEADER_BYTES),
    lastOffset: readInt64(tail, 0),
  };
}

function changed(key: string, cause?: unknown): NightshiftError {
  const message = `${key} is missing or has changed since the manifest was written`;
  return new NightshiftError('object_corrupt', message, { cause });
}
