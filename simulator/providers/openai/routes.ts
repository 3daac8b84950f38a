import type { ProviderAnswer } from '../call-faults';
import type { ProviderCallName } from '../settings';
import type { ApiCall } from './api-call';
import { cancelBatch, createBatch, listBatches, retrieveBatch } from './batches';
import { createFile, deleteFile, fileContent, listFiles, readUpload, retrieveFile } from './files';

/** What a call does when it takes effect. */
export type ApiEffect = (call: ApiCall) => ProviderAnswer;

/** A route of the API, and the id in its path. */
export interface ApiRoute {
  readonly name: ProviderCallName;
  readonly id: string;
  /**
   * Reads the body, before the call takes effect.
   * @throws invalid_request
   */
  prepare(body: Buffer, contentType: string): Promise<ApiEffect>;
}

const ID = '([^/]+)';
const ROUTES: readonly [pattern: RegExp, name: ProviderCallName, effect: ApiEffect | null][] = [
  [/^POST \/files$/, 'files.create', null],
  [/^GET \/files$/, 'files.list', listFiles],
  [new RegExp(`^GET /files/${ID}$`), 'files.retrieve', retrieveFile],
  [new RegExp(`^DELETE /files/${ID}$`), 'files.delete', deleteFile],
  [new RegExp(`^GET /files/${ID}/content$`), 'files.content', fileContent],
  [/^POST \/batches$/, 'batches.create', createBatch],
  [/^GET \/batches$/, 'batches.list', listBatches],
  [new RegExp(`^GET /batches/${ID}$`), 'batches.retrieve', retrieveBatch],
  [new RegExp(`^POST /batches/${ID}/cancel$`), 'batches.cancel', cancelBatch],
];

/** The route of a method and a path below the base URL; null if there is none. */
export function findRoute(method: string, path: string): ApiRoute | null {
  for (const [pattern, name, effect] of ROUTES) {
    const match = pattern.exec(`${method} ${path}`);
    if (match === null) continue;
    const id = decodeURIComponent(match[1] ?? '');
    const prepare = effect === null ? prepareUpload : async () => effect;
    return { name, id, prepare };
  }
  return null;
}

async function prepareUpload(body: Buffer, contentType: string): Promise<ApiEffect> {
  const form = await readUpload(contentType, body);
  return ({ state, nowMs }) => createFile(form, state, nowMs);
}
