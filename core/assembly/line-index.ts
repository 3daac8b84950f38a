/**
 * Reads the lines of a text, and stores a record for each (docs/design/batch-path.md#index-of-a-line). Lines of another
 * shape than the usual one, good or bad, are left to `JSON.parse`.
 *
 * Memory, from its beginning: fields (line-fields.ts), names, the URL, a block of a chain, closing bytes of open levels
 * (json-values.ts), models, strings of a line (line-shape.ts), long texts, then the records, the blocks of chains, and the text.
 */
import { storeIdHash } from './id-hash';
import { byteAt, FAIL } from './json-strings';
import { blanksEnd } from './json-values';
import { forgetModels, lineOfModel } from './known-models';
import { forgetTexts } from './known-texts';
import {
  CUSTOM_ID,
  endOf,
  equalOf,
  fieldsEnd,
  likeFieldsEnd,
  MODEL,
  NAMES,
  startOf,
} from './line-fields';
import { addPrompt, forgetHash, isShortText, NONE, plainHash, systemField } from './line-prompt';
import { hasGoodNames, inputsOf, isFaultless, URL_TEXT } from './line-rules';
import { forgetShape, keepShape } from './line-shape';
import { beginChain, chainLength } from './prefix-chain';

export { setRules } from './line-rules';

/** Words of a record (core/openai/line-index.ts reads them). Positions count from the start of the text. */
const START: usize = 0;
/** Position after the line, without CR and LF. In the record of a line that must be parsed, position of its LF. */
const END: usize = 4;
/** The words below are those of a line of the usual shape. */
const SHAPE: usize = 8;
/** Between the quotes. */
const ID_START: usize = 12;
const ID_END: usize = 16;
const ID_HASH: usize = 20;
/** Number of a line of this call with the same model, the line itself or an earlier one. */
const MODEL_LINE: usize = 32;
const MODEL_START: usize = 36;
const MODEL_END: usize = 40;
/** The JSON text of the system prompt, if its hash must be computed; else the end is 0. */
const SYSTEM_START: usize = 44;
const SYSTEM_END: usize = 48;
/** The same number in two records says that both have the same system prompt. */
const SYSTEM_EQUAL: usize = 52;
const PREFIX_HASH: usize = 56;
const INPUTS: usize = 60;
/** Number of the first block of the chain, and how many it has. */
const CHAIN_AT: usize = 64;
const CHAIN_LENGTH: usize = 68;
const RECORD_BYTES: usize = 72;
/** Values of {@link SHAPE}. */
const OTHER: u32 = 0;
const USUAL: u32 = 1;
const BLANK: u32 = 2;

const RECORDS: usize = 32768;
const MAX_RECORDS: u32 = 4096;
const CHAINS: usize = 331776;
const TEXT: usize = 393216;
/** Prompts of shorter lines have no block. */
const MIN_CHAIN_BYTES: usize = 256;
/** Longer system prompts are left to the caller, which remembers their hashes. */
const MAX_HASHED: usize = 64;
/** What a line of another shape costs beside its bytes, in bytes. */
const ODD_LINE_BYTES: u32 = 64;
/** An odd number that mixes bits. */
const PRIME: u64 = 0x9e3779b97f4a7c15;
const LF: u32 = 0x0a;
const CR: u32 = 0x0d;

let stop: usize = TEXT;
let chainEnd: u32 = 0;

/** Address of the table of names, which the caller writes once. */
export function namesStart(): usize {
  return NAMES;
}

/** Address of the URL in quotes, at most 512 bytes. */
export function urlStart(): usize {
  return URL_TEXT;
}

/** Address of the first record. */
export function recordsStart(): usize {
  return RECORDS;
}

/** Address of the blocks of chains. */
export function chainsStart(): usize {
  return CHAINS;
}

/** Address of the text. At least 128 more bytes of memory must follow it. */
export function textStart(): usize {
  return TEXT;
}

/** Position after the last line that was read. */
export function stopPosition(): u32 {
  return <u32>(stop - TEXT);
}

/**
 * Reads the lines of the text, which is UTF-8 and has at most 1 MiB or a single line. It stops early after lines of another
 * shape: `oddBytes` of them. Returns the number of records.
 */
export function indexLines(
  length: u32,
  seed: u32,
  maxLineBytes: u32,
  maxDepth: u32,
  maxTokens: u32,
  oddBytes: u32,
): u32 {
  const end = TEXT + <usize>length;
  store<u8>(end, <u8>LF);
  forgetTexts();
  forgetModels();
  forgetShape();
  forgetHash();
  chainEnd = 0;
  stop = TEXT;
  let count: u32 = 0;
  let odd: u32 = 0;
  while (stop < end && count < MAX_RECORDS && odd < oddBytes) {
    const start = stop;
    const record = RECORDS + <usize>count * RECORD_BYTES;
    const like = likeFieldsEnd(start);
    const newline = like !== FAIL ? like : fieldsEnd(start, maxDepth, maxTokens);
    const lineEnd = withoutReturn(start, newline);
    const isGood = like !== FAIL ? hasGoodNames() : newline !== FAIL && isFaultless();
    if (isGood && lineEnd - start <= <usize>maxLineBytes) {
      if (like === FAIL) keepShape(start, newline);
      storeLine(record, start, lineEnd);
      storeIdHash(record + ID_HASH, startOf(CUSTOM_ID) + 1, endOf(CUSTOM_ID) - 1, seed);
      store<u32>(record, lineOfModel(startOf(MODEL), endOf(MODEL), count), MODEL_LINE);
      stop = newline + 1;
    } else {
      const other = newline === FAIL ? newlineFrom(start) : newline;
      const isBlank = blanksEnd(start) === other && other - start <= <usize>maxLineBytes;
      storeOther(record, start, other, isBlank ? BLANK : OTHER);
      if (!isBlank) odd += <u32>(other - start) + ODD_LINE_BYTES;
      stop = other + 1;
    }
    count++;
  }
  stop = min(stop, end);
  return count;
}

/**
 * A cheap digest of bytes of the text, for tables. Other bytes may have the same digest. Fewer than 16 bytes count with
 * those before them.
 */
export function digestOf(from: u32, to: u32): u32 {
  const start = TEXT + <usize>from;
  const last = TEXT + <usize>to - 16;
  let mix = i32x4.splat(<i32>(last - start));
  for (let at = start; at < last; at += 16) {
    mix = v128.xor(v128.or(i32x4.shl(mix, 5), i32x4.shr_u(mix, 27)), v128.load(at));
  }
  mix = v128.xor(mix, v128.load(last));
  const low = <u64>i64x2.extract_lane(mix, 0);
  const high = <u64>i64x2.extract_lane(mix, 1);
  return <u32>((((low * PRIME) ^ high) * PRIME) >> 32);
}

/** The end of a line without its CR, if it has one. */
function withoutReturn(start: usize, newline: usize): usize {
  return newline > start && byteAt(newline - 1) === CR ? newline - 1 : newline;
}

function storeOther(record: usize, start: usize, newline: usize, shape: u32): void {
  store<u32>(record, <u32>(start - TEXT), START);
  store<u32>(record, <u32>(newline - TEXT), END);
  store<u32>(record, shape, SHAPE);
}

function storeLine(record: usize, start: usize, lineEnd: usize): void {
  store<u32>(record, <u32>(start - TEXT), START);
  store<u32>(record, <u32>(lineEnd - TEXT), END);
  store<u32>(record, USUAL, SHAPE);
  store<u32>(record, <u32>(startOf(CUSTOM_ID) + 1 - TEXT), ID_START);
  store<u32>(record, <u32>(endOf(CUSTOM_ID) - 1 - TEXT), ID_END);
  store<u32>(record, <u32>(startOf(MODEL) + 1 - TEXT), MODEL_START);
  store<u32>(record, <u32>(endOf(MODEL) - 1 - TEXT), MODEL_END);
  store<u32>(record, inputsOf(), INPUTS);
  storeSystem(record);
  storeChain(record, start, lineEnd);
}

function storeSystem(record: usize): void {
  const field = systemField();
  const isHashed = field === NONE || isShortText(field, MAX_HASHED);
  store<u32>(record, field === NONE || !isHashed ? 0 : plainHash(field), PREFIX_HASH);
  store<u32>(record, isHashed ? 0 : <u32>(startOf(field) - TEXT), SYSTEM_START);
  store<u32>(record, isHashed ? 0 : <u32>(endOf(field) - TEXT), SYSTEM_END);
  store<u32>(record, isHashed ? 0 : <u32>(equalOf(field) - TEXT), SYSTEM_EQUAL);
}

function storeChain(record: usize, start: usize, lineEnd: usize): void {
  beginChain(CHAINS + <usize>chainEnd * 4);
  if (lineEnd - start >= MIN_CHAIN_BYTES) addPrompt(lineEnd);
  store<u32>(record, chainEnd, CHAIN_AT);
  store<u32>(record, chainLength, CHAIN_LENGTH);
  chainEnd += chainLength;
}

/** Position of the first line feed. */
function newlineFrom(from: usize): usize {
  let at = from;
  let found = newlinesAt(at);
  while (found === 0) found = newlinesAt((at += 16));
  return at + <usize>ctz(found);
}

function newlinesAt(at: usize): i32 {
  return i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(<i8>LF)));
}
