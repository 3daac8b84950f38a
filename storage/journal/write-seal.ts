import { randomBytes } from 'node:crypto';
import { oneAhead } from '../../core/async/one-ahead';
import { NightshiftError } from '../../core/errors';
import type { Crc32 } from '../../core/journal/crc32';
import { FRAME_KIND } from '../../core/journal/frame';
import { OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import {
  encodeSealEnd,
  encodeSealHeader,
  SEAL_INDEX_ENTRY_BYTES,
  SEAL_TRAILER_BYTES,
} from '../../core/journal/seal';
import { restKey, sealKey } from '../../core/names/object-names';
import type { ObjectStore } from '../object-store';
import { FrameCopier } from './copy-frames';
import type { Range } from '../../core/range';
import type { JournalScope, SealedFrames, SealInfo } from './journal-store';

export interface WriteSealInput {
  readonly store: ObjectStore;
  readonly crc32: Crc32;
  readonly scope: JournalScope;
  readonly range: Range | 'rest';
  /** Answers in order of offset, one per offset; for a range exactly one per position. */
  readonly frames: SealedFrames;
}

/**
 * Writes one seal by copying the bytes of its frames (docs/design/journal.md#seals).
 * @throws object_store_failed, also if a frame has changed since it was scanned: scan again; internal if
 *   the frames are out of order, contain a retry frame, or are not one per position of the range
 */
export async function writeSeal(input: WriteSealInput): Promise<SealInfo> {
  const { store, scope, range, frames } = input;
  checkFrames(frames, range);
  const key = keyFor(scope, range);
  const result = await store.putIfAbsent(key, sealBytes(input));
  if (result === 'exists') throw new NightshiftError('internal', `${key} exists already`);
  const size = endOfFrames(frames) + frames.length * SEAL_INDEX_ENTRY_BYTES + SEAL_TRAILER_BYTES;
  return { key, size, safeModel: scope.safeModel, range: range === 'rest' ? null : range };
}

function keyFor({ batchId, safeModel }: JournalScope, range: Range | 'rest'): string {
  const r = randomBytes(8).toString('hex');
  if (range === 'rest') return restKey(batchId, safeModel, r);
  return sealKey(batchId, safeModel, range, r);
}

function checkFrames(frames: SealedFrames, range: Range | 'rest'): void {
  let previous = -1;
  for (const { header } of frames) {
    if (header.offset <= previous) throw refused('the frames are out of order');
    if (header.kind === FRAME_KIND.retry) throw refused('a retry frame is not an answer');
    previous = header.offset;
  }
  if (range !== 'rest' && frames.length !== range.to - range.from) {
    throw refused(`${frames.length} frames for positions ${range.from} to ${range.to}`);
  }
}

function refused(reason: string): NightshiftError {
  return new NightshiftError('internal', `cannot write a seal: ${reason}`);
}

/** A block is read while the one before it is written, because under load each step waits for a turn of the event loop. */
async function* sealBytes({ store, frames, crc32 }: WriteSealInput): AsyncGenerator<Buffer> {
  const counts = { count: frames.length, indexPosition: endOfFrames(frames) };
  const after = encodeSealEnd(placesOf(frames), counts, crc32);
  const copier = new FrameCopier(store, crc32);
  try {
    yield* oneAhead(copier.copy(frames, { before: encodeSealHeader(), after }));
  } finally {
    await copier.close();
  }
}

function* placesOf(frames: SealedFrames) {
  let position = OBJECT_HEADER_BYTES;
  for (const { header, byteLength } of frames) {
    yield { offset: header.offset, position };
    position += byteLength;
  }
}

function endOfFrames(frames: SealedFrames): number {
  let end = OBJECT_HEADER_BYTES;
  for (const { byteLength } of frames) end += byteLength;
  return end;
}
