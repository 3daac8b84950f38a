import { type DurationProbe, latin1, uint64, viewOf } from './probe';

/** A box, from its header to its end. */
interface Box {
  readonly type: string;
  readonly start: number;
  /** Where its content begins. */
  readonly content: number;
  readonly end: number;
}

/** A step through boxes that wants to read. */
type BoxSearch = Generator<{ offset: number; length: number }, Box | null, Uint8Array>;

const LONGEST_HEADER = 16;

/** MP4 and M4A: the duration of the movie header, which may be at either end of the file (ISO/IEC 14496-12). */
export function* mp4Duration(size: number): DurationProbe {
  const movie = yield* findBox('moov', 0, size);
  if (movie === null) return null;
  const header = yield* findBox('mvhd', movie.content, movie.end);
  if (header === null) return null;
  const bytes = yield { offset: header.content, length: 32 };
  if (bytes.length < 32) return null;
  const view = viewOf(bytes);
  const isLong = view.getUint8(0) === 1;
  const timescale = view.getUint32(isLong ? 20 : 12);
  const duration = isLong ? uint64(view, 24) : view.getUint32(16);
  // All ones mean that it is not known.
  const isKnown = duration > 0 && duration < (isLong ? 2 ** 63 : 0xffffffff);
  return isKnown && timescale > 0 ? duration / timescale : null;
}

function* findBox(type: string, from: number, end: number): BoxSearch {
  for (let at = from; at + 8 <= end;) {
    const box = boxAt(yield { offset: at, length: LONGEST_HEADER }, at, end);
    if (box === null || box.type === type) return box;
    at = box.end;
  }
  return null;
}

/** Null if there is no box. Every box is longer than its header, so a search always goes on. */
function boxAt(bytes: Uint8Array, start: number, outerEnd: number): Box | null {
  if (bytes.length < 8) return null;
  const view = viewOf(bytes);
  const stated = view.getUint32(0);
  const isLong = stated === 1;
  if (isLong && bytes.length < LONGEST_HEADER) return null;
  const length = isLong ? uint64(view, 8) : stated === 0 ? outerEnd - start : stated;
  const header = isLong ? LONGEST_HEADER : 8;
  if (length < header) return null;
  const end = Math.min(outerEnd, start + length);
  return { type: latin1(bytes, 4, 8), start, content: start + header, end };
}
