/** One page of a list, newest or oldest first. */
export interface Page<T> {
  readonly data: readonly T[];
  /** Whether another page follows. */
  readonly hasMore: boolean;
}

/** The place of a row in a list: lists are ordered by creation, then by insertion. */
export interface ListCursor {
  readonly createdAtSec: number;
  readonly seq: number;
}

/** The page of `limit` rows from a read that asked for one row more. */
export function toPage<T>(rows: readonly T[], limit: number): Page<T> {
  return { data: rows.slice(0, limit), hasMore: rows.length > limit };
}
