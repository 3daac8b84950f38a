import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { batchIdFromBytes } from '../../core/ids';
import type { BatchRecord } from '../../storage/postgres/batches';
import type { RouteDeps } from '../app-deps';
import { idempotencyKey, keyed, objectOf } from '../plugins/idempotency';
import { parseCreateBatch, parseInputFileId } from '../schemas/create-batch';
import { wrongValue } from '../schemas/faults';
import { parseJsonBody } from '../schemas/json-body';

/**
 * `POST /batches`: the row first, then the workflow; the row is the outbox of the start. A file that
 * is not there is no fault of the request: the batch is created and fails (contract §2.1, §7.1).
 *
 * @throws invalid_request with the first fault in the order of the fields
 */
export async function createBatch(request: FastifyRequest, deps: RouteDeps): Promise<BatchRecord> {
  const { tenant } = request;
  const key = idempotencyKey(request);
  const { windowSec, ...asked } = await parse(request, deps);
  const createdAtSec = deps.nowSec();
  const batch = {
    id: batchIdFromBytes(randomBytes(16)),
    tenant,
    ...asked,
    createdAtSec,
    expiresAtSec: createdAtSec + windowSec,
  };
  if (key === null) return start(await deps.batches.insert(batch), deps);
  const context = { tenant, route: 'POST /v1/batches', nowSec: createdAtSec, fields: asked };
  const once = await deps.batches.insertOnce(batch, keyed(key, context));
  if (once.kind === 'made') return start(once.object, deps);
  return objectOf(once, (id) => deps.batches.get(id, tenant));
}

async function start(batch: BatchRecord, { outbox }: RouteDeps): Promise<BatchRecord> {
  await outbox.start(batch);
  return batch;
}

async function parse(request: FastifyRequest, deps: RouteDeps) {
  const body = parseJsonBody(request.body);
  const inputFileId = parseInputFileId(body);
  const lookUp = { id: inputFileId, tenant: request.tenant, nowSec: deps.nowSec() };
  const file = await deps.files.get(lookUp);
  if (file !== null && file.purpose !== 'batch') {
    throw wrongValue('input_file_id', "a file whose purpose is 'batch'");
  }
  return { inputFileId, ...parseCreateBatch(body, deps.config.batch.endpoints) };
}
