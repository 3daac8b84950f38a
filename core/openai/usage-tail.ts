import type { Usage } from '../batch/counts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipBlanks,
  stringEnd,
  valueEnd,
} from './json-bytes';
import { isJsonObject } from './json-object';
import { usageOf } from './usage';

const KEY = Buffer.from('"usage"');
const COLON = 0x3a;
const NEWLINE = 0x0a;
/** How many occurrences of the key are looked at, from the end. Each costs a scan of the rest. */
const MAX_KEYS = 8;

/**
 * The `usage` of a JSON answer of which only the last bytes are known; null if they do not show it for sure. The
 * object must be a member of the answer itself: behind it, exactly one object is left to close.
 *
 * An occurrence of `"usage"` with a colon behind it is a key, because quotes within a string are escaped. So the
 * bytes before it are not needed.
 */
export function usageOfJsonTail(tail: Buffer): Usage | null {
  return lastUsage(tail, 1);
}

/**
 * The same for the tail of an event stream: the last event that has a `usage`. It may stand one level deeper than
 * in a JSON answer, because events of `/v1/responses` contain the whole response.
 */
export function usageOfEventTail(tail: Buffer): Usage | null {
  return lastUsage(tail, 2);
}

function lastUsage(tail: Buffer, maxDepth: 1 | 2): Usage | null {
  let at = tail.length;
  for (let tries = 0; tries < MAX_KEYS && at > 0; tries++) {
    at = tail.lastIndexOf(KEY, at - 1);
    if (at === -1) return null;
    const usage = tail[at - 1] === BACKSLASH ? null : usageAfter(tail, at, maxDepth);
    if (usage !== null) return usage;
  }
  return null;
}

function usageAfter(tail: Buffer, key: number, maxDepth: 1 | 2): Usage | null {
  const colon = skipBlanks(tail, key + KEY.length);
  const start = skipBlanks(tail, colon + 1);
  if (tail[colon] !== COLON || tail[start] !== OPEN_BRACE) return null;
  try {
    const end = valueEnd(tail, start);
    const depth = openObjects(tail, end, maxDepth === 1 ? tail.length : lineEnd(tail, end));
    if (depth < 1 || depth > maxDepth) return null;
    const value: unknown = JSON.parse(tail.toString('utf8', start, end));
    return isJsonObject(value) ? usageOf(value) : null;
  } catch {
    // What looked like JSON is broken or cut.
    return null;
  }
}

/** An event ends with its line. JSON contains no line break within a line that begins with `data:`. */
function lineEnd(tail: Buffer, from: number): number {
  const newline = tail.indexOf(NEWLINE, from);
  return newline === -1 ? tail.length : newline;
}

/** How many objects the bytes close that they did not open; -1 if they are not the end of one JSON object. */
function openObjects(json: Buffer, from: number, to: number): number {
  let depth = 0;
  for (let at = from; at < to; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = stringEnd(json, at);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return -depth;
}
