import { missing, wrongType, wrongValue } from './faults';
import { type Body, onlyKnown, present } from './members';

/** A checked body of `POST /uploads/{id}/complete`. */
export interface CompleteUpload {
  /** In the order of the file. */
  readonly partIds: readonly string[];
  /** Lower-case hex of the whole file; null where it was not given. */
  readonly md5: string | null;
}

const KNOWN = new Set(['part_ids', 'md5']);

/** Judges a completion, first fault answered (contract §1.7). @throws invalid_request */
export function parseCompleteUpload(body: Body): CompleteUpload {
  const ids = present(body, 'part_ids');
  if (ids === undefined) throw missing('part_ids');
  if (!Array.isArray(ids) || !ids.every((id): id is string => typeof id === 'string')) {
    throw wrongType('part_ids', 'an array of strings');
  }
  if (new Set(ids).size < ids.length) throw wrongValue('part_ids', 'each part once');
  const md5 = present(body, 'md5');
  if (md5 !== undefined && typeof md5 !== 'string') throw wrongType('md5', 'a string');
  if (md5 !== undefined && !/^[0-9a-f]{32}$/i.test(md5)) {
    throw wrongValue('md5', '32 hexadecimal digits');
  }
  onlyKnown(body, KNOWN);
  return { partIds: ids, md5: md5?.toLowerCase() ?? null };
}
