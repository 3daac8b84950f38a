import type { Range } from '../range';

/** The gaps in `[0, entries)` that no range covers, in order. Ranges may overlap and exceed it. */
export function uncovered(ranges: readonly Range[], entries: number): Range[] {
  const gaps: Range[] = [];
  let next = 0;
  for (const range of [...ranges].sort((a, b) => a.from - b.from)) {
    if (range.from >= entries) break;
    if (range.to <= Math.max(range.from, next)) continue;
    if (range.from > next) gaps.push({ from: next, to: range.from });
    next = Math.max(next, range.to);
  }
  if (next < entries) gaps.push({ from: next, to: entries });
  return gaps;
}

/** Groups ranges into slices of at most `maxEntries` positions each; splits ranges if needed. */
export function* inSlices(ranges: readonly Range[], maxEntries: number): Generator<Range[]> {
  let slice: Range[] = [];
  let left = maxEntries;
  for (const range of ranges) {
    for (let from = range.from; from < range.to;) {
      const to = Math.min(range.to, from + left);
      slice.push({ from, to });
      left -= to - from;
      from = to;
      if (left > 0) continue;
      yield slice;
      slice = [];
      left = maxEntries;
    }
  }
  if (slice.length > 0) yield slice;
}
