import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { TraceContext } from '../../core/batch/trace-context';
import { batchIdFromBytes } from '../../core/names/ids';
import type { SealedHeaders } from '../../platform/header-vault';
import type { BatchRow } from '../../storage/postgres/batches/types';
import type { RouteDeps } from '../app-deps';
import { idempotencyKey, keyed, objectOf } from './idempotency';
import { type createBatchBody, parseCreateBatch, parseInputFileId } from '../requests/create-batch';
import { wrongValue } from '../requests/faults';
import { parseJsonBody } from '../../http/bodies/json-body';

/** What creating a batch needs. */
export interface CreateBatchContext {
  readonly schema: ReturnType<typeof createBatchBody>;
  readonly deps: RouteDeps;
}

/**
 * `POST /batches`: inserts the row, then starts the workflow; the row is the outbox of the start. If the
 * input file does not exist, the batch is created all the same, and fails
 * (docs/design/api-contract.md#create-a-batch).
 *
 * @throws invalid_request with the first fault in the order of the fields
 */
export async function createBatch(
  request: FastifyRequest,
  { schema, deps }: CreateBatchContext,
): Promise<BatchRow> {
  const { tenant } = request;
  const key = idempotencyKey(request);
  const { windowSec, ...asked } = await parse(request, { schema, deps });
  const createdAtSec = deps.nowSec();
  const id = batchIdFromBytes(randomBytes(16));
  const batch = {
    id,
    tenant,
    ...asked,
    createdAtSec,
    expiresAtSec: createdAtSec + windowSec,
    headers: passedHeaders(request, { id, deps }),
    traceContext: traceContext(request, deps),
  };
  if (key === null) return start(await deps.batches.insert(batch), deps);
  const context = { tenant, route: 'POST /v1/batches', nowSec: createdAtSec, fields: asked };
  const once = await deps.batches.insertOnce(batch, keyed(key, context));
  if (once.kind === 'made') return start(once.object, deps);
  return objectOf(once, (id) => deps.batches.get(id, tenant));
}

/** Headers that `pass_through_headers` lists, encrypted; undefined if the request has none of them. */
function passedHeaders(
  request: FastifyRequest,
  { id, deps }: { id: string; deps: RouteDeps },
): SealedHeaders | undefined {
  const headers: Record<string, string> = {};
  for (const given of deps.config.pass_through_headers) {
    const name = given.toLowerCase();
    const value = request.headers[name];
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return Object.keys(headers).length === 0 ? undefined : deps.vault.seal(id, headers);
}

/** The span of this request, below which the batch is traced; null without tracing. */
function traceContext({ span }: FastifyRequest, { nowMs }: RouteDeps): TraceContext | null {
  if (span === null) return null;
  const { traceparent, tracestate } = span.headers();
  if (traceparent === undefined) return null;
  const state = tracestate === undefined ? {} : { tracestate };
  return { traceparent, ...state, startedAtMs: nowMs() };
}

async function start(batch: BatchRow, { outbox }: RouteDeps): Promise<BatchRow> {
  await outbox.start(batch);
  return batch;
}

async function parse(request: FastifyRequest, { schema, deps }: CreateBatchContext) {
  const body = parseJsonBody(request.body);
  const inputFileId = parseInputFileId(schema, body);
  const lookUp = { id: inputFileId, tenant: request.tenant, nowSec: deps.nowSec() };
  const file = await deps.files.get(lookUp);
  if (file !== null && file.purpose !== 'batch') {
    throw wrongValue('input_file_id', "a file whose purpose is 'batch'");
  }
  return { inputFileId, ...parseCreateBatch(schema, body) };
}
