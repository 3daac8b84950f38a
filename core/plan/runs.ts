import type { Range } from '../range';

/**
 * What begins at a place of a plan. `none`: the run before goes on. `shared`: a run of lines that share a
 * prefix. `single`: lines that share nothing with their neighbours, so none of them leads the others.
 */
export const RUN_MARK = { none: 0, shared: 1, single: 2 } as const;

/** Marks in one byte. */
const PER_BYTE = 4;
const MARK_BITS = 2;
const MARK_MASK = 3;

/** The content of a runs object (docs/design/journal.md#runs): two bits for each place, lowest bits first. */
export function encodeRuns(marks: Uint8Array): Buffer {
  const bytes = Buffer.alloc(Math.ceil(marks.length / PER_BYTE));
  for (let place = 0; place < marks.length; place++) {
    const at = Math.floor(place / PER_BYTE);
    bytes[at] = (bytes[at] ?? 0) | ((marks[place] ?? 0) << (MARK_BITS * (place % PER_BYTE)));
  }
  return bytes;
}

/** The bytes of a runs object that hold the marks of `places`. */
export function runsBytes({ from, to }: Range): Range {
  return { from: Math.floor(from / PER_BYTE), to: Math.ceil(to / PER_BYTE) };
}

/** The marks of `places`, from the bytes at {@link runsBytes}. Missing bytes count as `none`. */
export function decodeRuns(bytes: Uint8Array, places: Range): Uint8Array {
  const first = runsBytes(places).from * PER_BYTE;
  return Uint8Array.from({ length: places.to - places.from }, (_, i) => {
    const place = places.from + i - first;
    const byte = bytes[Math.floor(place / PER_BYTE)] ?? 0;
    return (byte >> (MARK_BITS * (place % PER_BYTE))) & MARK_MASK;
  });
}

/** The marks of a plan without a runs object: a run for each prefix hash, `single` for the hash 0. */
export function runsOfHashes(count: number, hashOf: (place: number) => number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, place) => {
    const hash = hashOf(place);
    if (place > 0 && hashOf(place - 1) === hash) return RUN_MARK.none;
    return hash === 0 ? RUN_MARK.single : RUN_MARK.shared;
  });
}
