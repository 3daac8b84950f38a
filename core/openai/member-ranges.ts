import { COMMA, skipBlanks, stringEnd, valueEnd } from './json-bytes';
import { decoded, isKey } from './json-keys';

/** Which bytes of a request line are sent, and the id of its answer. */
export interface LineFields {
  /** Bytes `[bodyStart, bodyEnd)` are the value of `body`, sent unchanged. */
  readonly bodyStart: number;
  readonly bodyEnd: number;
  readonly customId: string;
}

const BODY = Buffer.from('body');
const CUSTOM_ID = Buffer.from('custom_id');
const ABSENT = -1;

/**
 * Finds `body` and `custom_id` among the top-level members of a line that has passed validation. It does
 * not parse the line, because a body is sent byte for byte. As with `JSON.parse`, the last of repeated
 * members counts, and keys and ids are unescaped. @throws RangeError for an invalid line
 */
export function readLineFields(line: Buffer): LineFields {
  let bodyStart = ABSENT;
  let bodyEnd = ABSENT;
  let idStart = ABSENT;
  let at = skipBlanks(line, skipBlanks(line, 0) + 1);
  while (at < line.length) {
    const keyEnd = stringEnd(line, at);
    const valueStart = skipBlanks(line, skipBlanks(line, keyEnd + 1) + 1);
    const end = valueEnd(line, valueStart);
    if (isKey(line, [at, keyEnd], BODY)) {
      bodyStart = valueStart;
      bodyEnd = end;
    } else if (isKey(line, [at, keyEnd], CUSTOM_ID)) {
      idStart = valueStart;
    }
    at = skipBlanks(line, end);
    if (line[at] !== COMMA) break;
    at = skipBlanks(line, at + 1);
  }
  if (bodyStart === ABSENT || idStart === ABSENT) {
    throw new RangeError('line without body or custom_id');
  }
  return { bodyStart, bodyEnd, customId: decoded(line, idStart, stringEnd(line, idStart)) };
}
