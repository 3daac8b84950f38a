import type { Range } from '../range';

/** The parts of `[0, entries)` that no range covers, in order. Ranges may overlap and lie outside. */
export function uncovered(ranges: readonly Range[], entries: number): Range[] {
  const holes: Range[] = [];
  let next = 0;
  for (const range of [...ranges].sort((a, b) => a.from - b.from)) {
    if (range.from >= entries) break;
    if (range.to <= Math.max(range.from, next)) continue;
    if (range.from > next) holes.push({ from: next, to: range.from });
    next = Math.max(next, range.to);
  }
  if (next < entries) holes.push({ from: next, to: entries });
  return holes;
}

/** Cuts ranges into groups of at most `maxEntries` positions each, splitting ranges where needed. */
export function* inSlices(ranges: readonly Range[], maxEntries: number): Generator<Range[]> {
  let slice: Range[] = [];
  let room = maxEntries;
  for (const range of ranges) {
    for (let from = range.from; from < range.to;) {
      const to = Math.min(range.to, from + room);
      slice.push({ from, to });
      room -= to - from;
      from = to;
      if (room > 0) continue;
      yield slice;
      slice = [];
      room = maxEntries;
    }
  }
  if (slice.length > 0) yield slice;
}
