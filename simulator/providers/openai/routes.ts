import { errorAnswer } from '../answer';
import { routeIn, type ApiEffect, type FakeApi, type RouteEntry } from '../fake-api';
import { cancelBatch, createBatch, listBatches, retrieveBatch } from './batches';
import { createFile, deleteFile, fileContent, listFiles, readUpload, retrieveFile } from './files';

const ID = '([^/]+)';
const ROUTES: readonly RouteEntry[] = [
  [/^POST \/v1\/files$/, 'files.create', { prepare: prepareUpload }],
  [/^GET \/v1\/files$/, 'files.list', listFiles],
  [new RegExp(`^GET /v1/files/${ID}$`), 'files.retrieve', retrieveFile],
  [new RegExp(`^DELETE /v1/files/${ID}$`), 'files.delete', deleteFile],
  [new RegExp(`^GET /v1/files/${ID}/content$`), 'files.content', fileContent],
  [/^POST \/v1\/batches$/, 'batches.create', createBatch],
  [/^GET \/v1\/batches$/, 'batches.list', listBatches],
  [new RegExp(`^GET /v1/batches/${ID}$`), 'batches.retrieve', retrieveBatch],
  [new RegExp(`^POST /v1/batches/${ID}/cancel$`), 'batches.cancel', cancelBatch],
];

/** OpenAI's Files and Batches API. */
export const OPENAI_API: FakeApi = {
  prefix: 'openai',
  findRoute: (method, path) => routeIn(ROUTES, method, path),
  keyOf: ({ authorization }) => authorization?.replace(/^Bearer /i, '') ?? '',
  errorAnswer,
};

async function prepareUpload(body: Buffer, contentType: string): Promise<ApiEffect> {
  const form = await readUpload(contentType, body);
  return ({ state, nowMs }) => createFile(form, state, nowMs);
}
