/**
 * Merges frames in order of offset and copies their lines behind each other (docs/design/journal.md#runs-of-frames).
 * It stops at every frame that is not usual, which core/journal's callers take one by one.
 *
 * Memory: the totals, then the table of sources that the caller lays out (core/journal/merge-memory.ts), then windows of
 * frames and blocks for lines. A frame begins with a header of 44 bytes (core/journal/frame.ts).
 */

/** Lines, then two checksums as i32, then five sums of tokens as u64. */
const TOTALS: usize = 1024;
const FIRST_SUM: usize = TOTALS + 16;
const SUMS: i32 = 5;

const HEADER_BYTES: usize = 44;
const OFFSET_AT: usize = 8;
const KIND_AT: usize = 16;
const TAG_AT: usize = 22;
const USAGE_AT: usize = 24;
/** Kind and flags of an output frame whose counts fit into its header. */
const PLAIN_OUTPUT: u32 = 1;
const NEWLINE: u8 = 0x0a;
/** Bits of a tag; more in the caller's tag mean that any tag is usual. */
const MAX_TAG: u32 = 0xffff;

let offsets: usize = 0;
let starts: usize = 0;
let ends: usize = 0;
let wholeEnds: usize = 0;
let heap: usize = 0;

/** Address of the totals over all runs. */
export function totalsStart(): usize {
  return TOTALS;
}

/**
 * Sets the addresses of the table: offsets of the next frames (f64), their starts and ends, the ends of the whole frames in
 * their windows (0 if the window is elsewhere), and the numbers of the sources as a heap, the smallest offset first.
 */
export function useTable(table: usize, sources: u32): void {
  offsets = table;
  starts = offsets + ((<usize>sources) << 3);
  ends = starts + ((<usize>sources) << 2);
  wholeEnds = ends + ((<usize>sources) << 2);
  heap = wholeEnds + ((<usize>sources) << 2);
}

/**
 * Copies lines to `[to, toEnd)` and moves their sources to the next frames, until a frame has an offset of `limit` or more, is
 * not the only one of its line, is the last one of its window, is no plain output, names another model than `tag`, or does
 * not fit. Returns the address behind the last newline. `count` sources are in the heap.
 */
export function copyRun(limit: f64, count: u32, tag: u32, to: usize, toEnd: usize): usize {
  let at = to;
  while (count > 0) {
    const source = <usize>load<u32>(heap);
    const second = secondOffset(count);
    if (offsetOf(source) === second) break;
    const least = second < limit ? second : limit;
    let isUsual = true;
    while (isUsual && offsetOf(source) < least) {
      const next = copyLine(source, tag, at, toEnd);
      isUsual = next !== 0;
      if (isUsual) at = next;
    }
    settleTop(count);
    if (!isUsual || least === limit) break;
  }
  return at;
}

/** Copies the next line of a source and moves it on; 0 if the line is not usual. */
function copyLine(source: usize, tag: u32, to: usize, toEnd: usize): usize {
  const start = <usize>load<u32>(starts + (source << 2));
  const end = <usize>load<u32>(ends + (source << 2));
  if (end >= <usize>load<u32>(wholeEnds + (source << 2))) return 0;
  const bytes = end - start - HEADER_BYTES;
  if (to + bytes >= toEnd || !isUsualFrame(start, tag)) return 0;
  memory.copy(to, start + HEADER_BYTES, bytes);
  store<u8>(to + bytes, NEWLINE);
  count(start);
  store<u32>(starts + (source << 2), <u32>end);
  store<u32>(ends + (source << 2), <u32>(end + HEADER_BYTES) + load<u32>(end));
  store<f64>(offsets + (source << 3), <f64>load<i64>(end + OFFSET_AT));
  return to + bytes + 1;
}

function isUsualFrame(frame: usize, tag: u32): bool {
  if (<u32>load<u16>(frame + KIND_AT) !== PLAIN_OUTPUT) return false;
  const own = <u32>load<u16>(frame + TAG_AT);
  return own === 0 || own === tag || tag > MAX_TAG;
}

/** Adds a frame to the totals. */
function count(frame: usize): void {
  store<u32>(TOTALS, load<u32>(TOTALS) + 1);
  const low = load<u32>(frame + OFFSET_AT);
  const high = load<u32>(frame + OFFSET_AT + 4);
  store<u32>(TOTALS + 4, load<u32>(TOTALS + 4) + mixed(low, high + 1));
  store<u32>(TOTALS + 8, load<u32>(TOTALS + 8) + mixed(~low, high + 0x51ed270b));
  for (let i = 0; i < SUMS; i++) {
    const sum = FIRST_SUM + ((<usize>i) << 3);
    store<u64>(sum, load<u64>(sum) + <u64>load<u32>(frame + USAGE_AT + ((<usize>i) << 2)));
  }
}

/** As in activities/finalize/line-checksum.ts. */
function mixed(low: u32, seed: u32): u32 {
  let h = low ^ (seed * 0x9e3779b1);
  h = (h ^ (h >>> 16)) * 0x7feb352d;
  h = (h ^ (h >>> 15)) * 0x846ca68b;
  return h ^ (h >>> 16);
}

function offsetOf(source: usize): f64 {
  return load<f64>(offsets + (source << 3));
}

function offsetAt(place: u32): f64 {
  return offsetOf(<usize>load<u32>(heap + ((<usize>place) << 2)));
}

/** The smallest offset of all sources but the first; infinity if there is none. */
function secondOffset(count: u32): f64 {
  const left = count > 1 ? offsetAt(1) : Infinity;
  const right = count > 2 ? offsetAt(2) : Infinity;
  return left < right ? left : right;
}

/** As in storage/journal/merge/cursor-heap.ts. */
function settleTop(count: u32): void {
  const moving = load<u32>(heap);
  const offset = offsetOf(<usize>moving);
  let at: u32 = 0;
  for (let child: u32 = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && offsetAt(child + 1) < offsetAt(child)) child++;
    if (offsetAt(child) >= offset) break;
    store<u32>(heap + ((<usize>at) << 2), load<u32>(heap + ((<usize>child) << 2)));
    at = child;
  }
  store<u32>(heap + ((<usize>at) << 2), moving);
}
