import type { FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import type { BatchRow } from '../../storage/postgres/batches/types';
import type { RouteDeps } from '../app-deps';
import { parseBatchId } from '../requests/path-parameters';

/** The batch in the path of a request. @throws not_found also if it belongs to another tenant; invalid_request */
export async function findBatch(request: FastifyRequest, deps: RouteDeps): Promise<BatchRow> {
  const id = batchIdOf(request);
  const batch = await deps.batches.get(id, request.tenant);
  if (batch === null) throw noSuchBatch(id);
  return batch;
}

/** The batch id in the path of a request. @throws invalid_request, not_found */
export function batchIdOf(request: FastifyRequest): string {
  const id = parseBatchId(request.params);
  // PostgreSQL text cannot contain NUL.
  if (id.includes('\0')) throw noSuchBatch(id);
  return id;
}

/** The error for a batch that does not exist, or not for this tenant. */
export function noSuchBatch(id: string): NightshiftError {
  return new NightshiftError('not_found', `No batch found with id '${id}'.`);
}
