import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { batchIdFromBytes } from '../../core/ids';
import type { BatchRecord } from '../../storage/postgres/batches';
import type { RouteDeps } from '../app-deps';
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
  const body = parseJsonBody(request.body);
  const inputFileId = parseInputFileId(body);
  const createdAtSec = deps.nowSec();
  const file = await deps.files.get({ id: inputFileId, tenant, nowSec: createdAtSec });
  if (file !== null && file.purpose !== 'batch') {
    throw wrongValue('input_file_id', "a file whose purpose is 'batch'");
  }
  const { windowSec, ...fields } = parseCreateBatch(body, deps.config.batch.endpoints);
  const batch = await deps.batches.insert({
    id: batchIdFromBytes(randomBytes(16)),
    tenant,
    inputFileId,
    ...fields,
    createdAtSec,
    expiresAtSec: createdAtSec + windowSec,
  });
  await deps.outbox.start(batch);
  return batch;
}
