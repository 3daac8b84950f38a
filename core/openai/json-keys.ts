import { BACKSLASH, COMMA, OPEN_BRACE, QUOTE, skipBlanks, stringEnd, valueEnd } from './json-bytes';

/** Whether the key with quotes at `open` and `close` equals `name`, which is ASCII. The JSON is valid. */
export function isKey(
  json: Buffer,
  [open, close]: readonly [number, number],
  name: Buffer,
): boolean {
  const length = close - open - 1;
  if (length === name.length) {
    // A native comparison costs as much as a loop over a hundred bytes, and names are short.
    for (let i = 0; i < length; i++) if (json[open + 1 + i] !== name[i]) return false;
    return true;
  }
  // Escapes make a key longer, by a factor of six at most.
  if (length < name.length || length > 6 * name.length) return false;
  return hasEscape(json, open, close) && decoded(json, open, close) === name.toString('latin1');
}

/** The string with quotes at `open` and `close`. */
export function decoded(json: Buffer, open: number, close: number): string {
  if (!hasEscape(json, open, close)) return json.toString('utf8', open + 1, close);
  return JSON.parse(json.toString('utf8', open, close + 1)) as string;
}

/**
 * Where the value of each named member of the object at `open` begins; null for an absent member. Does
 * not parse the values. As with `JSON.parse`, the last of repeated members counts.
 */
export function memberStarts(
  json: Buffer,
  open: number,
  names: readonly Buffer[],
): (number | null)[] {
  const found = names.map((): number | null => null);
  if (json[open] !== OPEN_BRACE) return found;
  let at = skipBlanks(json, open + 1);
  while (json[at] === QUOTE) {
    const keyEnd = stringEnd(json, at);
    const valueStart = skipBlanks(json, skipBlanks(json, keyEnd + 1) + 1);
    const index = indexOfKey(json, [at, keyEnd], names);
    if (index !== -1) found[index] = valueStart;
    at = skipBlanks(json, valueEnd(json, valueStart));
    if (json[at] !== COMMA) break;
    at = skipBlanks(json, at + 1);
  }
  return found;
}

/** A loop, because a callback for each member costs more than the comparisons. */
function indexOfKey(
  json: Buffer,
  key: readonly [number, number],
  names: readonly Buffer[],
): number {
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name !== undefined && isKey(json, key, name)) return index;
  }
  return -1;
}

function hasEscape(json: Buffer, open: number, close: number): boolean {
  for (let at = open + 1; at < close; at++) if (json[at] === BACKSLASH) return true;
  return false;
}
