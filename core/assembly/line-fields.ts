/**
 * Finds the fields of a line of the usual shape in one pass (docs/design/batch-path.md#index-of-a-line). All other lines,
 * good or bad, are left to `JSON.parse`.
 */
import {
  beginText,
  blanksEnd,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  commaEnd,
  enter,
  fixedStringEnd,
  keyEnd,
  keyStart,
  leave,
  member,
  OPEN_BRACE,
  OPEN_BRACKET,
  stringEnd,
  valueEnd,
} from './json-values';
import { byteAt, FAIL, hasEscape, QUOTE } from './json-strings';
import { firstEqual, MIN_COMPARED } from './known-texts';
import {
  beginShape,
  equalString,
  notePlain,
  sameShapeEnd,
  shiftAfter,
  stringCount,
} from './line-shape';

/** Fields, by the number of their name in the table (core/openai/line-index.ts writes it). */
export const CUSTOM_ID: i32 = 0;
const METHOD: i32 = 1;
/** See {@link CUSTOM_ID}. */
export const URL: i32 = 2;
const BODY: i32 = 3;
/** Fields of `body` begin with this one. */
export const MODEL: i32 = 4;
export const MESSAGES: i32 = 5;
export const INPUT: i32 = 6;
export const PROMPT: i32 = 7;
export const STREAM: i32 = 8;
export const TOOLS: i32 = 9;
export const STREAM_FORMAT: i32 = 10;
export const INSTRUCTIONS: i32 = 11;
const ROLE: i32 = 14;
const CONTENT: i32 = 15;
/** Content of the first system or developer message in `messages`. */
export const MESSAGES_SYSTEM: i32 = 16;
/** The same in `input`. */
export const INPUT_SYSTEM: i32 = 17;
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

/**
 * Each field has four words: where its value begins and ends, and where the earliest value begins that is known to equal
 * it, if it is a long string, as addresses; and how many strings of the line are before its beginning and its end.
 */
const PLACES: usize = 1024;
const PLACE_BYTES: usize = 16;
const PLACE_END: usize = 4;
const PLACE_EQUAL: usize = 8;
const STRINGS_BEFORE: usize = 12;
const STRINGS_BEFORE_END: usize = 14;
/** Fields that are not asked for once the line is read. */
const UNUSED: u32 = (1 << METHOD) | (1 << BODY) | (1 << ROLE) | (1 << CONTENT);
const REQUIRED: u32 = (1 << CUSTOM_ID) | (1 << METHOD) | (1 << URL) | (1 << BODY) | (1 << MODEL);
/**
 * Each name has 32 bytes: its text in quotes, at most 16 bytes, and at byte 16 a word with a bit set for each of them.
 */
export const NAMES: usize = 2048;
const NAME_BYTES: usize = 32;
const MASK_AT: usize = 16;

const LF: u32 = 0x0a;
const LETTER_N: u32 = 0x6e;

/** Elements of `input`, if that is an array. */
export let inputCount: u32 = 0;

/** A bit for each field that the line has. */
let present: u32 = 0;

/**
 * Reads the line at `start`, which must be UTF-8 and end with a line feed. Returns the address of that if the line is a JSON
 * object of the usual shape within the limits, of 2^31 at most; else FAIL.
 */
export function fieldsEnd(start: usize, maxDepth: u32, maxTokens: u32): usize {
  present = 0;
  inputCount = 0;
  beginShape();
  beginText(maxDepth, maxTokens);
  const open = blanksEnd(start);
  if (byteAt(open) !== OPEN_BRACE) return FAIL;
  const end = blanksEnd(objectEnd(open, LINE));
  return byteAt(end) === LF && (present & REQUIRED) === REQUIRED ? end : FAIL;
}

/**
 * The same for a line that is written like the line before, whose fields it has in their places among the strings. FAIL if
 * it is not; then nothing is known of any line.
 */
export function likeFieldsEnd(start: usize): usize {
  const newline = sameShapeEnd(start);
  if (newline === FAIL) return FAIL;
  for (let left = present & ~UNUSED; left !== 0; left &= left - 1) {
    const at = place(<i32>ctz(left));
    const strings = <u32>load<u16>(at, STRINGS_BEFORE);
    store<u32>(at, load<u32>(at) + shiftAfter(strings));
    const end = <u32>load<u16>(at, STRINGS_BEFORE_END);
    store<u32>(at, load<u32>(at, PLACE_END) + shiftAfter(end), PLACE_END);
    store<u32>(at, equalString(strings), PLACE_EQUAL);
  }
  return newline;
}

/** Where the value of a field begins. */
export function startOf(field: i32): usize {
  return load<u32>(place(field));
}

/** Position after it. */
export function endOf(field: i32): usize {
  return load<u32>(place(field), PLACE_END);
}

/** Where the earliest value in this call begins that is known to equal this one. */
export function equalOf(field: i32): usize {
  const start = startOf(field);
  const isLong = byteAt(start) === QUOTE && endOf(field) - start - 1 > MIN_COMPARED;
  return isLong ? load<u32>(place(field), PLACE_EQUAL) - 1 : start;
}

/** Whether the line has a field. */
export function has(field: i32): bool {
  return ((present >> field) & 1) !== 0;
}

/** Whether the field is there and not null. */
export function isPresent(field: i32): bool {
  return has(field) && firstByteOf(field) !== LETTER_N;
}

/** Of a value; 0 if the field is absent. */
export function firstByteOf(field: i32): u32 {
  return has(field) ? byteAt(startOf(field)) : 0;
}

function place(field: i32): usize {
  return PLACES + <usize>field * PLACE_BYTES;
}

/** False for a second value of the same field. `strings` of the line are before the value. */
function note(field: i32, start: usize, end: usize, strings: u32): bool {
  if (field === OTHER) return true;
  const bit = 1 << field;
  if ((present & bit) !== 0) return false;
  present |= bit;
  const at = place(field);
  store<u32>(at, <u32>start);
  store<u32>(at, <u32>end, PLACE_END);
  store<u32>(at, <u32>firstEqual, PLACE_EQUAL);
  store<u16>(at, <u16>strings, STRINGS_BEFORE);
  store<u16>(at, <u16>stringCount, STRINGS_BEFORE_END);
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
    const strings = stringCount;
    at = fieldEnd(field, start);
    if (at === FAIL || !note(field, start, at, strings)) return FAIL;
    at = blanksEnd(at);
    if (byteAt(at) === CLOSE_BRACE) return leave(at);
    at = commaEnd(at);
  }
  return FAIL;
}

function fieldEnd(field: i32, start: usize): usize {
  switch (field) {
    case CUSTOM_ID:
    case MODEL:
      return nameEnd(start);
    case URL:
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

/** A string without escapes that may be another one in the next line. */
function nameEnd(start: usize): usize {
  const end = stringEnd(start);
  notePlain();
  return hasEscape ? FAIL : end;
}

/** A string without escapes on which the rules for the line depend. */
function plainStringEnd(start: usize): usize {
  const end = fixedStringEnd(start);
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
      if (field === INPUT) inputCount = count;
      return leave(at);
    }
    at = commaEnd(at);
  }
  return FAIL;
}

/** Notes the content if it is a system message. Fails if that is neither a string nor an array. */
function messageEnd(open: usize, system: i32): usize {
  present &= ~((1 << ROLE) | (1 << CONTENT));
  const end = objectEnd(open, MESSAGE);
  if (end === FAIL || !isSystem()) return end;
  if (!has(CONTENT)) return FAIL;
  const byte = firstByteOf(CONTENT);
  if (byte !== QUOTE && byte !== OPEN_BRACKET) return FAIL;
  present |= 1 << system;
  v128.store(place(system), v128.load(place(CONTENT)));
  return end;
}

function isSystem(): bool {
  if (!has(ROLE)) return false;
  return isText(startOf(ROLE), SYSTEM) || isText(startOf(ROLE), DEVELOPER);
}

/** The field of the latest key in an object of this kind. */
function fieldOf(kind: i32): i32 {
  const end = kind === LINE ? MODEL : kind === REQUEST ? ROLE : MESSAGES_SYSTEM;
  const mask = ((1 as u32) << (<u32>min<usize>(keyEnd - keyStart, 16))) - 1;
  const key = v128.load(keyStart);
  for (let field = kind; field < end; field++) {
    const name = NAMES + <usize>field * NAME_BYTES;
    // Most names have another length.
    if (load<u32>(name, MASK_AT) !== mask) continue;
    if ((~i8x16.bitmask(i8x16.eq(key, v128.load(name))) & mask) === 0) return field;
  }
  return OTHER;
}

/** Whether the text in quotes at `start` is an entry of the table. */
function isText(start: usize, entry: i32): bool {
  const name = NAMES + <usize>entry * NAME_BYTES;
  const equal = i8x16.bitmask(i8x16.eq(v128.load(start), v128.load(name)));
  const mask = load<u32>(name + MASK_AT);
  return ((<u32>equal) & mask) === mask;
}
