import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import type { FileRecord } from '../../storage/postgres/files';
import type { RouteDeps } from '../app-deps';
import { addResource } from '../../http/resource';
import { toFileObject } from '../objects/file-object';
import { toListObject } from '../objects/list-object';
import { parseFileListQuery, unknownCursor } from '../requests/list-queries';
import { parseFileId } from '../requests/path-parameters';
import { sendContent } from './file-content';
import { createFile } from './file-create';

/** OpenAI's Files API (docs/design/api-contract.md#files). */
export function addFileRoutes(app: FastifyInstance, deps: RouteDeps): void {
  addResource(app, '/files', {
    POST: async (request) => {
      const file = await createFile(request, deps);
      request.span?.set({ 'file.id': file.id });
      return toFileObject(file);
    },
    GET: (request) => listFiles(request, deps),
  });
  addResource(app, '/files/:file_id', {
    GET: async (request) => toFileObject(await findFile(request, deps)),
    DELETE: (request) => deleteFile(request, deps),
  });
  addResource(app, '/files/:file_id/content', {
    GET: async (request, reply) =>
      sendContent(await findFile(request, deps), { request, reply, deps }),
  });
}

async function listFiles(request: FastifyRequest, deps: RouteDeps) {
  const query = parseFileListQuery(request.query);
  const page = await deps.files.list({ tenant: request.tenant, nowSec: deps.nowSec(), ...query });
  if (page === null) throw unknownCursor();
  return toListObject(page, toFileObject);
}

async function findFile(request: FastifyRequest, deps: RouteDeps): Promise<FileRecord> {
  const wanted = lookUp(request, deps);
  // PostgreSQL text cannot contain NUL.
  const file = wanted.id.includes('\0') ? null : await deps.files.get(wanted);
  if (file === null) throw noSuchFile(wanted.id);
  return file;
}

/** Hides the file at once; the sweep deletes its bytes (docs/design/api-contract.md#delete-a-file). */
async function deleteFile(request: FastifyRequest, deps: RouteDeps) {
  const file = lookUp(request, deps);
  if (file.id.includes('\0') || !(await deps.files.hide(file))) throw noSuchFile(file.id);
  return { id: file.id, object: 'file', deleted: true };
}

function lookUp(request: FastifyRequest, { nowSec }: RouteDeps) {
  return { id: parseFileId(request.params), tenant: request.tenant, nowSec: nowSec() };
}

function noSuchFile(id: string): NightshiftError {
  return new NightshiftError('not_found', `No such File object: ${id}`, { param: 'id' });
}
