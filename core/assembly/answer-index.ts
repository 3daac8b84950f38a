/**
 * Finds the model and the usage of an answer of the usual shape in one pass, and makes its JSON ASCII
 * (docs/design/execution.md#index-of-an-answer). All other answers, good or bad, are left to core/openai/any-answer.ts.
 *
 * Memory: the record, the table of names, the model of the latest answer, the closing bytes of open levels
 * (answer-values.ts), then the answer, and behind it its ASCII copy.
 */
import { asciiCopyEnd } from './ascii-copy';
import {
  beginText,
  blanksEnd,
  byteAt,
  CLOSE_BRACE,
  commaEnd,
  enter,
  FAIL,
  hasBlanks,
  hasEscape,
  keyStart,
  leave,
  member,
  OPEN_BRACE,
  QUOTE,
  stringEnd,
  valueEnd,
} from './answer-values';

/** Names by their number in the table (core/openai/answer-index.ts writes it). */
const MODEL: i32 = 0;
const USAGE: i32 = 1;
const PROMPT_DETAILS: i32 = 7;
const INPUT_DETAILS: i32 = 8;
const COMPLETION_DETAILS: i32 = 9;
const OUTPUT_DETAILS: i32 = 10;
/** Any other member. */
const OTHER: i32 = -1;

/** Objects whose members are looked at, as their first name and the one after their last: `first | end << 8`. */
const ANSWER: i32 = 0 | (2 << 8);
const COUNTS: i32 = 2 | (11 << 8);
const OF_INPUT: i32 = 11 | (12 << 8);
const OF_OUTPUT: i32 = 12 | (13 << 8);

/** The record: where the model begins and ends, counted from the start of the text, then five counts. */
const RECORD: usize = 1024;
const FIRST_COUNT: usize = RECORD + 8;
const RECORD_BYTES: usize = 28;
/** A count that is absent. */
const ABSENT: i32 = -1;
/** The most digits of a number that is always less than 2^31. */
const MAX_DIGITS: usize = 9;

const NAMES: usize = 2048;
const NAME_BYTES: usize = 64;
const MASK_AT: usize = 32;
const SLOT_AT: usize = 36;
/** The name of the latest model. The program reads 16 bytes at once. */
const KNOWN_MODEL: usize = 3072;
const MAX_MODEL_BYTES: usize = 256;

const TEXT_START: usize = 32768;
const MAX_TEXT_BYTES: usize = 1 << 20;
const COPY_START: usize = TEXT_START + MAX_TEXT_BYTES + 64;
const MAX_DEPTH: u32 = 16383;
/** More than a text of this length can have. */
const MAX_TOKENS: u32 = 1 << 30;
/** Of a longer usage, the escapes could make one that is too long to count. */
const MAX_USAGE_BYTES: usize = 65536 / 3;

/** What {@link indexAnswer} returns about an answer that it has read. */
const READ: u32 = 1;
/** The answer is ASCII and has no blanks outside strings. */
const PLAIN: u32 = 2;
/** It names the model that the latest answer has named. */
const SAME_MODEL: u32 = 4;

/** A bit for each slot whose member was seen: the model, the usage, its counts and its details. */
let seen: u32 = 0;
/** The length of the model at KNOWN_MODEL, without quotes. */
let knownBytes: usize = 0;

/**
 * Address of the table of names. Each has 64 bytes: its text in quotes, at most 32 bytes, then a word with a bit set for
 * each of them, then a word with its slot. Names of one slot mean the same. The caller writes it once.
 */
export function namesStart(): usize {
  return NAMES;
}

/** Address of the record: where the model begins and ends (0 if there is none), then the counts of slots 0 to 4. */
export function recordStart(): usize {
  return RECORD;
}

/** Address of the answer, which has up to 1 MiB. */
export function textStart(): usize {
  return TEXT_START;
}

/** Address of the copy that {@link copyAscii} makes. */
export function copyStart(): usize {
  return COPY_START;
}

/** Reads an answer of this length; 0 if it must be read another way. */
export function indexAnswer(length: u32): u32 {
  const end = TEXT_START + <usize>length;
  v128.store(end, i8x16.splat(0));
  store<u64>(RECORD, 0);
  for (let at = FIRST_COUNT; at < RECORD + RECORD_BYTES; at += 4) store<i32>(at, ABSENT);
  seen = 0;
  beginText(MAX_DEPTH, MAX_TOKENS);
  const open = blanksEnd(TEXT_START);
  if (byteAt(open) !== OPEN_BRACE) return 0;
  const close = objectEnd(open, ANSWER);
  if (close === FAIL || blanksEnd(close) !== end) return 0;
  const plain = !hasBlanks && isAscii(TEXT_START, end) ? PLAIN : 0;
  return READ | plain | (isKnownModel() ? SAME_MODEL : 0);
}

/** Copies the answer of this length, which was read, as ASCII without blanks; the length of the copy, 0 if it is not UTF-8. */
export function copyAscii(length: u32): u32 {
  const end = asciiCopyEnd(TEXT_START, TEXT_START + <usize>length, COPY_START);
  return end === FAIL ? 0 : <u32>(end - COPY_START);
}

/** Zeros follow the end. */
function isAscii(start: usize, end: usize): bool {
  let bits = i8x16.splat(0);
  for (let at = start; at < end; at += 16) bits = v128.or(bits, v128.load(at));
  return i8x16.bitmask(bits) === 0;
}

/** Remembers the model if it is not the known one. */
function isKnownModel(): bool {
  const start = TEXT_START + load<u32>(RECORD);
  const bytes = <usize>(load<u32>(RECORD + 4) - load<u32>(RECORD));
  if (bytes === knownBytes && isEqual(start, KNOWN_MODEL, bytes)) return true;
  memory.copy(KNOWN_MODEL, start, bytes);
  knownBytes = bytes;
  return false;
}

function isEqual(one: usize, other: usize, bytes: usize): bool {
  for (let at: usize = 0; at < bytes; at += 16) {
    const equal = i8x16.bitmask(i8x16.eq(v128.load(one + at), v128.load(other + at)));
    const left = bytes - at;
    const mask: i32 = left < 16 ? (1 << (<i32>left)) - 1 : 0xffff;
    if ((equal & mask) !== mask) return false;
  }
  return true;
}

/** Steps over an object. A key with an escape could be a name of the table, and which repeated member counts is not known. */
function objectEnd(open: usize, kind: i32): usize {
  if (!enter()) return FAIL;
  let at = blanksEnd(open + 1);
  if (byteAt(at) === CLOSE_BRACE) return leave(at);
  while (at !== FAIL) {
    const start = member(at);
    if (start === FAIL || hasEscape) return FAIL;
    const name = nameOf(kind);
    if (name === OTHER) at = valueEnd(start);
    else at = isFirst(name) ? namedEnd(name, start) : FAIL;
    if (at === FAIL) return FAIL;
    at = blanksEnd(at);
    if (byteAt(at) === CLOSE_BRACE) return leave(at);
    at = commaEnd(at);
  }
  return FAIL;
}

/** The number of the latest key in an object of this kind. */
function nameOf(kind: i32): i32 {
  const end = kind >>> 8;
  for (let name = kind & 0xff; name < end; name++) if (isKey(name)) return name;
  return OTHER;
}

function isKey(name: i32): bool {
  const entry = NAMES + <usize>name * NAME_BYTES;
  const equal = i8x16.bitmask(i8x16.eq(v128.load(keyStart), v128.load(entry)));
  const mask = load<u32>(entry + MASK_AT);
  if (((<u32>equal) & mask & 0xffff) !== (mask & 0xffff)) return false;
  if (mask >>> 16 === 0) return true;
  const rest = i8x16.bitmask(i8x16.eq(v128.load(keyStart + 16), v128.load(entry + 16)));
  return ((<u32>rest) & (mask >>> 16)) === mask >>> 16;
}

/** False for a second member of the same slot. */
function isFirst(name: i32): bool {
  const bit: u32 = 1 << slotOf(name);
  if ((seen & bit) !== 0) return false;
  seen |= bit;
  return true;
}

function slotOf(name: i32): u32 {
  return load<u32>(NAMES + <usize>name * NAME_BYTES + SLOT_AT);
}

function namedEnd(name: i32, start: usize): usize {
  switch (name) {
    case MODEL:
      return modelEnd(start);
    case USAGE:
      return usageEnd(start);
    case PROMPT_DETAILS:
    case INPUT_DETAILS:
      return detailsEnd(start, OF_INPUT);
    case COMPLETION_DETAILS:
    case OUTPUT_DETAILS:
      return detailsEnd(start, OF_OUTPUT);
    default:
      return countEnd(start, slotOf(name));
  }
}

/** A short string of ASCII without escapes. Another value names no model. */
function modelEnd(start: usize): usize {
  if (byteAt(start) !== QUOTE) return valueEnd(start);
  const end = stringEnd(start);
  if (end === FAIL || hasEscape || end - start - 2 > MAX_MODEL_BYTES) return FAIL;
  for (let at = start; at < end; at++) if (byteAt(at) > 0x7f) return FAIL;
  store<u32>(RECORD, <u32>(start + 1 - TEXT_START));
  store<u32>(RECORD + 4, <u32>(end - 1 - TEXT_START));
  return end;
}

/** A usage that is no object has no counts. */
function usageEnd(start: usize): usize {
  const end = byteAt(start) === OPEN_BRACE ? objectEnd(start, COUNTS) : valueEnd(start);
  return end === FAIL || end - start > MAX_USAGE_BYTES ? FAIL : end;
}

function detailsEnd(start: usize, kind: i32): usize {
  return byteAt(start) === OPEN_BRACE ? objectEnd(start, kind) : valueEnd(start);
}

/** An integer of a few digits, or null. */
function countEnd(start: usize, slot: u32): usize {
  const end = valueEnd(start);
  if (end === FAIL || byteAt(start) === 0x6e) return end;
  if (end - start > MAX_DIGITS) return FAIL;
  let count: i32 = 0;
  for (let at = start; at < end; at++) {
    const digit = byteAt(at) - 0x30;
    if (digit > 9) return FAIL;
    count = 10 * count + <i32>digit;
  }
  store<i32>(FIRST_COUNT + <usize>(slot << 2), count);
  return end;
}
