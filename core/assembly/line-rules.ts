/** The rules of an endpoint for lines of the usual shape, as core/openai/line-check.ts has them for parsed ones. */
import { blanksEnd, OPEN_BRACKET } from './json-values';
import { byteAt } from './json-strings';
import {
  CUSTOM_ID,
  endOf,
  firstByteOf,
  INPUT,
  inputCount,
  isPresent,
  MODEL,
  startOf,
  STREAM,
  STREAM_FORMAT,
  URL,
} from './line-fields';
import { haveSameBytes } from './same-bytes';

/** The URL that all lines must have, in quotes. The caller writes it. */
export const URL_TEXT: usize = 3072;
const MAX_CUSTOM_ID_BYTES: usize = 512;
const MAX_MODEL_BYTES: usize = 256;
/** Bytes of a string's quotes. */
const QUOTES: usize = 2;
const LETTER_T: u32 = 0x74;
const MINUS: u32 = 0x2d;
const ZERO: u32 = 0x30;

let urlBytes: usize = 0;
let requiredFields: u32 = 0;
let countsInputs: bool = false;
let answersAudio: bool = false;

/** Sets the rules of the lines that are read next. Required fields have a bit each. */
export function setRules(url: u32, required: u32, inputs: bool, audio: bool): void {
  urlBytes = url;
  requiredFields = required;
  countsInputs = inputs;
  answersAudio = audio;
}

/** Whether the latest line has no fault. It may have none if this is false. */
export function isFaultless(): bool {
  return (
    hasGoodNames() &&
    isText(URL) &&
    hasRequired() &&
    firstByteOf(STREAM) !== LETTER_T &&
    !(answersAudio && isPresent(STREAM_FORMAT))
  );
}

/** The same if the latest line is written like one without a fault: what else the rules ask for is the same in both. */
export function hasGoodNames(): bool {
  return isWithin(CUSTOM_ID, MAX_CUSTOM_ID_BYTES) && isWithin(MODEL, MAX_MODEL_BYTES);
}

/** How many inputs count. A text or an array of tokens is one; an array of these counts each element. */
export function inputsOf(): u32 {
  if (!countsInputs) return 0;
  if (firstByteOf(INPUT) !== OPEN_BRACKET) return 1;
  const first = byteAt(blanksEnd(startOf(INPUT) + 1));
  return first === MINUS || first - ZERO <= 9 ? 1 : inputCount;
}

function isText(field: i32): bool {
  const start = startOf(field);
  return endOf(field) - start === urlBytes && haveSameBytes(start, URL_TEXT, urlBytes);
}

/** Whether a string has 1 to `most` bytes. It has no more characters than those. */
function isWithin(field: i32, most: usize): bool {
  const length = endOf(field) - startOf(field) - QUOTES;
  return length - 1 < most;
}

function hasRequired(): bool {
  for (let left = requiredFields; left !== 0; left &= left - 1) {
    if (!isPresent(<i32>ctz(left))) return false;
  }
  return true;
}
