import type { StreamedBody } from '../../platform/http-client/outbound-body';
import type { JobInput } from '../provider';

const HEAD = Buffer.from('{"requests":[');
const TAIL = Buffer.from('}');
const NEWLINE = 0x0a;
const COMMA = 0x2c;
const CLOSE_BRACKET = 0x5d;

/**
 * The body of a create, made of the staged lines as they are read: each line is an element of `requests`, so each
 * line end becomes a comma and the last one the end of the array. Lines are JSON without line breaks.
 */
export function createBody(input: JobInput): StreamedBody {
  return {
    bytes: HEAD.length + input.bytes + TAIL.length,
    async *open() {
      yield HEAD;
      let seen = 0;
      for await (const piece of input.open()) {
        seen += piece.length;
        yield elements(piece, seen === input.bytes);
      }
      yield TAIL;
    },
  };
}

function elements(piece: Uint8Array, isLast: boolean): Uint8Array {
  const bytes = Buffer.from(piece);
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
    bytes[at] = isLast && at === bytes.length - 1 ? CLOSE_BRACKET : COMMA;
  }
  return bytes;
}
