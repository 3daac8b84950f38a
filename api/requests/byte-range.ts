import type { Range } from '../../core/range';

/** What a `Range` header asks for: some bytes of an object, all of it, or bytes beyond its end. */
export type RangeRequest = Range | 'whole' | 'unsatisfiable';

/**
 * Reads a single range of bytes (RFC 9110 §14). Several ranges, or a malformed one, ask for the whole
 * object (docs/design/api-contract.md#byte-ranges).
 */
export function parseByteRange(header: string | undefined, size: number): RangeRequest {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  if (match === null) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? 'whole' : suffix(Number(last), size);
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'unsatisfiable';
  return { from: start, to: last === '' ? size : Math.min(Number(last) + 1, size) };
}

function suffix(length: number, size: number): RangeRequest {
  if (length === 0) return 'unsatisfiable';
  // Satisfiable, but `Content-Range` has no form for zero bytes.
  if (size === 0) return 'whole';
  return { from: Math.max(0, size - length), to: size };
}
