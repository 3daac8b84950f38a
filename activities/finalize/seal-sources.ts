import { readInt64 } from '../../core/journal/int64';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { ManifestSeal } from '../../core/journal/manifest';
import { FRAME_HEADER_BYTES, frameOffset } from '../../core/journal/frame';
import { hasObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import {
  decodeSealTrailer,
  SEAL_INDEX_ENTRY_BYTES,
  SEAL_TRAILER_BYTES,
} from '../../core/journal/seal';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';
import type { FrameSource } from './seal-cursor';

const PROBES_AT_ONCE = 16;
const LAST_BYTES = SEAL_INDEX_ENTRY_BYTES + SEAL_TRAILER_BYTES;

/**
 * Looks at both ends of every seal of a manifest: where its frames lie, and which offsets they span.
 * In key order; seals without frames are left out. @throws object_corrupt, object_store_failed
 */
export async function probeSeals(
  store: ObjectStore,
  seals: readonly ManifestSeal[],
): Promise<FrameSource[]> {
  const sources: (FrameSource | null)[] = new Array<FrameSource | null>(seals.length).fill(null);
  const todo = seals.entries();
  const lane = async () => {
    for (const [i, seal] of todo) sources[i] = await probeSeal(store, seal);
  };
  await Promise.all(Array.from({ length: PROBES_AT_ONCE }, lane));
  return sources.filter((source) => source !== null);
}

async function probeSeal(
  store: ObjectStore,
  { key, size }: ManifestSeal,
): Promise<FrameSource | null> {
  const reader = await store.open(key).catch((error: unknown) => {
    throw isNightshiftError(error, 'object_missing') ? notWhole(key, error) : error;
  });
  try {
    if (reader.size !== size) throw notWhole(key);
    return await probe(key, reader);
  } finally {
    await reader.close();
  }
}

async function probe(key: string, reader: ObjectReader): Promise<FrameSource | null> {
  const head = await reader.read(0, OBJECT_HEADER_BYTES + FRAME_HEADER_BYTES);
  const tail = await reader.read(Math.max(0, reader.size - LAST_BYTES), LAST_BYTES);
  const { indexPosition, frameCount } = decodeSealTrailer(tail, reader.size);
  if (!hasObjectHeader(head, MAGIC.seal)) throw notWhole(key);
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

function notWhole(key: string, cause?: unknown): NightshiftError {
  const message = `${key}, named by the manifest, is missing or not as it was`;
  return new NightshiftError('object_corrupt', message, { cause });
}
