/** The models of the lines that were read in the same call, so that each name is decoded once. */
import { firstBytes, haveSameBytes } from './same-bytes';

/** Each entry: where the name begins and ends, and the number of the first line with it, plus 1. */
const TABLE: usize = 20480;
const ENTRY_BYTES: usize = 16;
const ENTRIES: u32 = 64;
const PRIME: u64 = 0x9e3779b97f4a7c15;

/** Forgets all models. */
export function forgetModels(): void {
  memory.fill(TABLE, 0, <usize>ENTRIES * ENTRY_BYTES);
}

/** The number of a line with the same model: an earlier one if it is known, else `line` itself. */
export function lineOfModel(start: usize, end: usize, line: u32): u32 {
  const length = end - start;
  const digest = (firstBytes(start, length) + <u64>length) * PRIME + load<u64>(end - 8);
  const entry = TABLE + <usize>((digest * PRIME) >> 58) * ENTRY_BYTES;
  const known = load<u32>(entry);
  const earlier = load<u32>(entry, 8);
  if (earlier !== 0 && <usize>load<u32>(entry, 4) - known === length) {
    if (haveSameBytes(known, start, length)) return earlier - 1;
  }
  store<u32>(entry, <u32>start);
  store<u32>(entry, <u32>end, 4);
  store<u32>(entry, line + 1, 8);
  return line;
}
