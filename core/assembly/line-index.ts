/**
 * Finds the fields of a line of the usual shape in one pass (docs/design/batch-path.md#index-of-a-line). All other lines,
 * good or bad, are left to `JSON.parse`.
 *
 * Memory: the record of fields, the closing bytes of open levels (json-values.ts), then a text of one or more lines.
 */
import {
  beginText,
  blanksEnd,
  byteAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  commaEnd,
  enter,
  FAIL,
  hasEscape,
  keyStart,
  leave,
  member,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  stringEnd,
  valueEnd,
} from './json-values';

/**
 * Fields of the record, by the number of their name in the table (core/openai/line-index.ts writes it). Each has two
 * words: where its value begins and ends, counted from the start of the line. The end of an absent value is 0.
 */
const CUSTOM_ID: i32 = 0;
const METHOD: i32 = 1;
const URL: i32 = 2;
const BODY: i32 = 3;
const MODEL: i32 = 4;
const MESSAGES: i32 = 5;
const INPUT: i32 = 6;
const ROLE: i32 = 14;
const CONTENT: i32 = 15;
/** Content of the first system or developer message in `messages`. */
const MESSAGES_SYSTEM: i32 = 16;
/** The same in `input`. */
const INPUT_SYSTEM: i32 = 17;
const FIELDS: i32 = 18;
/** Any other member. */
const OTHER: i32 = -1;
/** Values that are compared with entries of the table. */
const SYSTEM: i32 = 16;
const DEVELOPER: i32 = 17;
const POST: i32 = 18;

/** Objects whose members are fields, by the first field that they can have. */
const LINE: i32 = CUSTOM_ID;
const REQUEST: i32 = MODEL;
const MESSAGE: i32 = ROLE;

const RECORD: usize = 1024;
const FIELD_BYTES: usize = 8;
const COUNT: usize = RECORD + <usize>FIELDS * FIELD_BYTES;
const NAMES: usize = 2048;
const NAME_BYTES: usize = 32;
const MASK_AT: usize = 16;
const TEXT_START: usize = 32768;
/** An odd number that mixes bits. */
const PRIME: u64 = 0x9e3779b97f4a7c15;

/** Address of the line that is read. */
let lineStart: usize = TEXT_START;

/**
 * Address of the table of names. Each has 32 bytes: its text in quotes, at most 16 bytes, and at byte 16 a word with a bit
 * set for each of them. The caller writes it once.
 */
export function namesStart(): usize {
  return NAMES;
}

/** Address of the record: two words for each field, then the number of elements of `input`. */
export function recordStart(): usize {
  return RECORD;
}

/** Address of the text with the lines. At least 32 more bytes of memory must follow it. */
export function textStart(): usize {
  return TEXT_START;
}

/**
 * Reads the line that begins at byte `from` of the text and must be UTF-8. True if it is a JSON object of the usual shape
 * within the limits, of 2^31 at most. The record then has its fields.
 */
export function indexLine(from: u32, length: u32, maxDepth: u32, maxTokens: u32): bool {
  lineStart = TEXT_START + <usize>from;
  const end = lineStart + <usize>length;
  const next = load<u8>(end);
  store<u8>(end, 0);
  for (let at = RECORD; at <= COUNT; at += FIELD_BYTES) store<u64>(at, 0);
  beginText(maxDepth, maxTokens);
  const isRead = isUsual(end);
  store<u8>(end, next);
  return isRead;
}

function isUsual(end: usize): bool {
  const open = blanksEnd(lineStart);
  if (byteAt(open) !== OPEN_BRACE) return false;
  const close = objectEnd(open, LINE);
  return close !== FAIL && blanksEnd(close) === end && hasRequired();
}

/**
 * A cheap digest of a field's bytes, for tables. Texts of the same digest may differ. A text of less than 16 bytes counts
 * with the bytes before it.
 */
export function digestOf(field: i32): u32 {
  const start = lineStart + load<u32>(place(field));
  const last = lineStart + load<u32>(place(field) + 4) - 16;
  let mix = i32x4.splat(<i32>(last - start));
  for (let at = start; at < last; at += 16) {
    mix = v128.xor(v128.or(i32x4.shl(mix, 5), i32x4.shr_u(mix, 27)), v128.load(at));
  }
  mix = v128.xor(mix, v128.load(last));
  const low = <u64>i64x2.extract_lane(mix, 0);
  const high = <u64>i64x2.extract_lane(mix, 1);
  return <u32>((((low * PRIME) ^ high) * PRIME) >> 32);
}

function hasRequired(): bool {
  return has(CUSTOM_ID) && has(METHOD) && has(URL) && has(BODY) && has(MODEL);
}

function has(field: i32): bool {
  return load<u32>(place(field) + 4) !== 0;
}

function place(field: i32): usize {
  return RECORD + <usize>field * FIELD_BYTES;
}

/** False for a second value of the same field. */
function note(field: i32, start: usize, end: usize): bool {
  if (field === OTHER) return true;
  if (has(field)) return false;
  store<u32>(place(field), <u32>(start - lineStart));
  store<u32>(place(field) + 4, <u32>(end - lineStart));
  return true;
}

/** An object whose members are fields. A key with an escape could be the name of one. */
function objectEnd(open: usize, kind: i32): usize {
  if (!enter()) return FAIL;
  let at = blanksEnd(open + 1);
  if (byteAt(at) === CLOSE_BRACE) return leave(at);
  while (at !== FAIL) {
    const start = member(at);
    if (start === FAIL || hasEscape) return FAIL;
    const field = fieldOf(kind);
    at = fieldEnd(field, start);
    if (at === FAIL || !note(field, start, at)) return FAIL;
    at = blanksEnd(at);
    if (byteAt(at) === CLOSE_BRACE) return leave(at);
    at = commaEnd(at);
  }
  return FAIL;
}

function fieldEnd(field: i32, start: usize): usize {
  switch (field) {
    case CUSTOM_ID:
    case URL:
    case MODEL:
    case ROLE:
      return plainStringEnd(start);
    case METHOD:
      return isText(start, POST) ? plainStringEnd(start) : FAIL;
    case BODY:
      return byteAt(start) === OPEN_BRACE ? objectEnd(start, REQUEST) : FAIL;
    case MESSAGES:
    case INPUT:
      return byteAt(start) === OPEN_BRACKET ? listEnd(start, field) : valueEnd(start);
    default:
      return valueEnd(start);
  }
}

/** A string without escapes. */
function plainStringEnd(start: usize): usize {
  const end = stringEnd(start);
  return hasEscape ? FAIL : end;
}

/**
 * A list of messages, or of inputs. As the rules of prompts have it, the first element that is neither an object nor an
 * array ends the search for a system message.
 */
function listEnd(open: usize, field: i32): usize {
  if (!enter()) return FAIL;
  let at = blanksEnd(open + 1);
  if (byteAt(at) === CLOSE_BRACKET) return leave(at);
  const system = field === MESSAGES ? MESSAGES_SYSTEM : INPUT_SYSTEM;
  let isSearched = true;
  let count: u32 = 0;
  while (at !== FAIL) {
    count++;
    const byte = byteAt(at);
    if (isSearched && byte === OPEN_BRACE) {
      at = messageEnd(at, system);
      isSearched = !has(system);
    } else {
      if (byte !== OPEN_BRACKET && byte !== OPEN_BRACE) isSearched = false;
      at = valueEnd(at);
    }
    at = blanksEnd(at);
    if (byteAt(at) === CLOSE_BRACKET) {
      if (field === INPUT) store<u32>(COUNT, count);
      return leave(at);
    }
    at = commaEnd(at);
  }
  return FAIL;
}

/** Notes the content if it is a system message. Fails if that is neither a string nor an array. */
function messageEnd(open: usize, system: i32): usize {
  store<u64>(place(ROLE), 0);
  store<u64>(place(CONTENT), 0);
  const end = objectEnd(open, MESSAGE);
  if (end === FAIL || !isSystem()) return end;
  if (!has(CONTENT)) return FAIL;
  const content = place(CONTENT);
  const byte = byteAt(lineStart + load<u32>(content));
  if (byte !== QUOTE && byte !== OPEN_BRACKET) return FAIL;
  store<u64>(place(system), load<u64>(content));
  return end;
}

function isSystem(): bool {
  if (!has(ROLE)) return false;
  const role = lineStart + load<u32>(place(ROLE));
  return isText(role, SYSTEM) || isText(role, DEVELOPER);
}

/** The field of the latest key in an object of this kind. */
function fieldOf(kind: i32): i32 {
  const end = kind === LINE ? MODEL : kind === REQUEST ? ROLE : MESSAGES_SYSTEM;
  for (let field = kind; field < end; field++) if (isText(keyStart, field)) return field;
  return OTHER;
}

/** Whether the text in quotes at `start` is an entry of the table. */
function isText(start: usize, entry: i32): bool {
  const name = NAMES + <usize>entry * NAME_BYTES;
  const equal = i8x16.bitmask(i8x16.eq(v128.load(start), v128.load(name)));
  const mask = load<u32>(name + MASK_AT);
  return ((<u32>equal) & mask) === mask;
}
