import { routeIn, type FakeApi, type RouteEntry } from '../fake-api';
import {
  batchResults,
  cancelBatch,
  createBatch,
  deleteBatch,
  listBatches,
  retrieveBatch,
} from './batches';
import { errorAnswer } from './errors';

const BATCH = '/v1/messages/batches/([^/]+)';
const TABLE: readonly RouteEntry[] = [
  [/^POST \/v1\/messages\/batches$/, 'batches.create', createBatch],
  [/^GET \/v1\/messages\/batches$/, 'batches.list', listBatches],
  [new RegExp(`^GET ${BATCH}$`), 'batches.retrieve', retrieveBatch],
  [new RegExp(`^DELETE ${BATCH}$`), 'batches.delete', deleteBatch],
  [new RegExp(`^POST ${BATCH}/cancel$`), 'batches.cancel', cancelBatch],
  [new RegExp(`^GET ${BATCH}/results$`), 'files.content', batchResults],
];

/** Anthropic's Message Batches API. Its official client sends the key as a bearer token. */
export const ANTHROPIC_API: FakeApi = {
  prefix: 'anthropic',
  findRoute: (method, path) => routeIn(TABLE, method, path),
  keyOf: ({ 'x-api-key': key, authorization }) =>
    typeof key === 'string' ? key : (authorization?.replace(/^Bearer /i, '') ?? ''),
  errorAnswer,
};
