import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isTerminal } from '../../core/batch/status';
import { NightshiftError } from '../../core/errors';
import type { BatchRow } from '../../storage/postgres/batches/types';
import type { RouteDeps } from '../app-deps';
import { addBatchLimitHeaders } from './batch-limit-headers';
import { addResource } from '../../http/resource';
import { toBatchObject } from '../objects/batch-object';
import { toListObject } from '../objects/list-object';
import { createBatchBody } from '../requests/create-batch';
import { parseBatchListQuery, unknownCursor } from '../requests/list-queries';
import { createBatch } from './batch-create';
import { batchIdOf, findBatch, noSuchBatch } from './find-batch';

/** OpenAI's Batches API (docs/design/api-contract.md#batches). */
export function addBatchRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const schema = createBatchBody(deps.config.batch.endpoints);
  addResource(app, '/batches', {
    POST: async (request, reply) => {
      try {
        const batch = await createBatch(request, { schema, deps });
        request.span?.set({ 'batch.id': batch.id, 'file.id': batch.inputFileId });
        return toBatchObject(batch);
      } finally {
        await addBatchLimitHeaders(request, reply, deps);
      }
    },
    GET: (request) => listBatches(request, deps),
  });
  addResource(app, '/batches/:batch_id', {
    GET: async (request) => toBatchObject(await findBatch(request, deps)),
  });
  addResource(app, '/batches/:batch_id/cancel', {
    POST: async (request, reply) => toBatchObject(await cancelBatch(request, { reply, deps })),
  });
}

async function listBatches(request: FastifyRequest, deps: RouteDeps) {
  const { limit, after } = parseBatchListQuery(request.query);
  const cursor = after === undefined ? {} : { after };
  const page = await deps.batches.list({ tenant: request.tenant, limit, ...cursor });
  if (page === null) throw unknownCursor();
  // An empty page must be the last one: with `has_more`, an SDK would ask for the next page forever.
  return toListObject(limit === 0 ? { data: [], hasMore: false } : page, toBatchObject);
}

/**
 * Claims the cause `cancelled` in the row, then signals the workflow
 * (docs/design/api-contract.md#cancel-a-batch).
 */
async function cancelBatch(
  request: FastifyRequest,
  { reply, deps }: { reply: FastifyReply; deps: RouteDeps },
): Promise<BatchRow> {
  const id = batchIdOf(request);
  const claim = await deps.batches.claimCancel(id, request.tenant, deps.nowSec());
  if (claim === null) throw noSuchBatch(id);
  const { batch, claimed } = claim;
  if (claimed) {
    deps.outbox.signalCancel(id);
  } else if (isTerminal(batch.status) && batch.status !== 'cancelled') {
    // SDKs retry a 409.
    reply.header('x-should-retry', 'false');
    throw new NightshiftError('conflict', `Cannot cancel a batch with status '${batch.status}'.`);
  }
  return batch;
}
