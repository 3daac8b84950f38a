import { parseInteger, wrongType, wrongValue, withinBounds } from './faults';

/** A parsed query string: repeated parameters are arrays. */
export type RawQuery = Readonly<Record<string, unknown>>;

export interface FileListQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly after?: string;
  readonly purpose?: string;
}

export interface BatchListQuery {
  readonly limit: number;
  readonly after?: string;
}

const FILE_LIMITS = { min: 1, max: 10_000 } as const;
const BATCH_LIMITS = { min: 0, max: 100 } as const;

/** Query of `GET /files` (contract §1.4). @throws invalid_request */
export function parseFileListQuery(query: RawQuery): FileListQuery {
  const order = single(query, 'order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw wrongValue('order', "one of 'asc' or 'desc'");
  return {
    limit: parseLimit(query, 10_000, FILE_LIMITS),
    order,
    ...optional('after', parseText(query, 'after')),
    ...optional('purpose', parseText(query, 'purpose')),
  };
}

/** Query of `GET /batches` (contract §2.4). @throws invalid_request */
export function parseBatchListQuery(query: RawQuery): BatchListQuery {
  return {
    limit: parseLimit(query, 20, BATCH_LIMITS),
    ...optional('after', parseText(query, 'after')),
  };
}

/** The 400 of a cursor that names nothing: page one instead would send an SDK round for ever. */
export function unknownCursor(): Error {
  return wrongValue('after', 'the id of an object of this list');
}

function parseLimit(
  query: RawQuery,
  fallback: number,
  bounds: { min: number; max: number },
): number {
  const text = single(query, 'limit');
  if (text === undefined) return fallback;
  return withinBounds(parseInteger(text, 'limit'), 'limit', bounds);
}

function parseText(query: RawQuery, name: string): string | undefined {
  const text = single(query, name);
  // Postgres has no text with NUL in it: no id and no purpose can contain one.
  if (text === '' || text?.includes('\0') === true) throw wrongValue(name, 'a non-empty text');
  return text;
}

function single(query: RawQuery, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw wrongType(name, 'a single value');
}

function optional<K extends string>(
  name: K,
  value: string | undefined,
): Partial<Record<K, string>> {
  return value === undefined ? {} : ({ [name]: value } as Record<K, string>);
}
