import { z } from 'zod';
import { checkRequest } from './check-request';
import { wrongValue } from './faults';
import { choice, integerText, nonEmptyText } from './fields';

/** Query of `GET /files` (docs/design/api-contract.md#list-files). */
export const fileListQuery = z.object({
  order: choice(['asc', 'desc'], "one of 'asc' or 'desc'").default('desc'),
  limit: integerText({ min: 1, max: 10_000 }).default(10_000),
  after: nonEmptyText().optional(),
  purpose: nonEmptyText().optional(),
});

/** Query of `GET /batches` (docs/design/api-contract.md#list-batches). */
export const batchListQuery = z.object({
  limit: integerText({ min: 0, max: 100 }).default(20),
  after: nonEmptyText().optional(),
});

/** A checked query of `GET /files`. */
export interface FileListQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  readonly after?: string;
  readonly purpose?: string;
}

/** A checked query of `GET /batches`. */
export interface BatchListQuery {
  readonly limit: number;
  readonly after?: string;
}

/** Checks {@link fileListQuery}. @throws invalid_request */
export function parseFileListQuery(query: unknown): FileListQuery {
  const { limit, order, after, purpose } = checkRequest(fileListQuery, query);
  return {
    limit,
    order,
    ...(after === undefined ? {} : { after }),
    ...(purpose === undefined ? {} : { purpose }),
  };
}

/** Checks {@link batchListQuery}. @throws invalid_request */
export function parseBatchListQuery(query: unknown): BatchListQuery {
  const { limit, after } = checkRequest(batchListQuery, query);
  return { limit, ...(after === undefined ? {} : { after }) };
}

/** The 400 for a cursor that names no object. If it got the first page, an SDK would loop forever. */
export function unknownCursor(): Error {
  return wrongValue('after', 'the id of an object of this list');
}
