import {
  routeIn,
  type ApiCall,
  type ApiEffect,
  type ApiRoute,
  type FakeApi,
  type RouteEntry,
} from '../fake-api';
import { cancelBatch, createBatch, listBatches, retrieveBatch } from './batches';
import { createFile, deleteFile, fileContent, listFiles, readUpload, retrieveFile } from './files';
import { OPENAI_VARIANT, type OpenAiVariant } from './variant';

const ID = '([^/]+)';

/** OpenAI's Files and Batches API, as a host has it. */
export function openAiApi(variant: OpenAiVariant): FakeApi {
  const table = routesOf(variant);
  return {
    prefix: variant.prefix,
    findRoute: (method, path) => routeIn(table, method, path),
    keyOf: ({ authorization }) => authorization?.replace(/^Bearer /i, '') ?? '',
    errorAnswer: (error) => variant.errorAnswer(error),
  };
}

/** OpenAI itself. */
export const OPENAI_API = openAiApi(OPENAI_VARIANT);

function routesOf(variant: OpenAiVariant): readonly RouteEntry[] {
  const { root, uploadPath, purposes, batchesPath } = variant;
  const at = (method: string, path: string): RegExp => new RegExp(`^${method} ${root}${path}$`);
  const prepare: ApiRoute['prepare'] = async (body, contentType): Promise<ApiEffect> => {
    const form = await readUpload(contentType, body, purposes);
    return ({ state, nowMs }) => createFile(form, state, nowMs, variant);
  };
  const atHost =
    (effect: (call: ApiCall, host: OpenAiVariant) => ReturnType<ApiEffect>): ApiEffect =>
    (call) =>
      effect(call, variant);
  return [
    [at('POST', uploadPath), 'files.create', { prepare }],
    [at('GET', '/files'), 'files.list', atHost(listFiles)],
    [at('GET', `/files/${ID}`), 'files.retrieve', atHost(retrieveFile)],
    [at('DELETE', `/files/${ID}`), 'files.delete', deleteFile],
    [at('GET', `/files/${ID}/content`), 'files.content', fileContent],
    [at('POST', batchesPath), 'batches.create', atHost(createBatch)],
    [at('GET', batchesPath), 'batches.list', atHost(listBatches)],
    [at('GET', `${batchesPath}/${ID}`), 'batches.retrieve', atHost(retrieveBatch)],
    [at('POST', `${batchesPath}/${ID}/cancel`), 'batches.cancel', atHost(cancelBatch)],
  ];
}
