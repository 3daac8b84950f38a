import type { Range } from '../../core/range';

/** What a `Range` header asks of an object: a part, all of it, or nothing that is there. */
export type RangeRequest = Range | 'whole' | 'unsatisfiable';

/**
 * Reads a single range of bytes (RFC 9110 §14); several, or anything malformed, ask for the whole
 * object (contract §7).
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
  // All of nothing is satisfiable, and no `Content-Range` can say it.
  if (size === 0) return 'whole';
  return { from: Math.max(0, size - length), to: size };
}
