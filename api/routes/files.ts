import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import type { FileRecord } from '../../storage/postgres/files';
import type { RouteDeps } from '../app-deps';
import { addResource } from '../../http/resource';
import { toFileObject } from '../schemas/file-object';
import { toListObject } from '../schemas/list-object';
import { parseFileListQuery, type RawQuery, unknownCursor } from '../schemas/list-query';
import { sendContent } from './file-content';
import { createFile } from './file-create';

/** OpenAI's Files API (contract §1). */
export function addFileRoutes(app: FastifyInstance, deps: RouteDeps): void {
  addResource(app, '/files', {
    POST: async (request) => toFileObject(await createFile(request, deps)),
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
  const query = parseFileListQuery(request.query as RawQuery);
  const page = await deps.files.list({ tenant: request.tenant, nowSec: deps.nowSec(), ...query });
  if (page === null) throw unknownCursor();
  return toListObject(page, toFileObject);
}

async function findFile(request: FastifyRequest, deps: RouteDeps): Promise<FileRecord> {
  const { id } = lookUp(request, deps);
  const file = id.includes('\0') ? null : await deps.files.get(lookUp(request, deps));
  if (file === null) throw noSuchFile(id);
  return file;
}

/** Hides the file at once; its bytes are swept when no batch needs them any more (contract §7.1). */
async function deleteFile(request: FastifyRequest, deps: RouteDeps) {
  const file = lookUp(request, deps);
  if (file.id.includes('\0') || !(await deps.files.hide(file))) throw noSuchFile(file.id);
  return { id: file.id, object: 'file', deleted: true };
}

function lookUp(request: FastifyRequest, { nowSec }: RouteDeps) {
  const { file_id: id } = request.params as { file_id: string };
  return { id, tenant: request.tenant, nowSec: nowSec() };
}

function noSuchFile(id: string): NightshiftError {
  return new NightshiftError('not_found', `No such File object: ${id}`, { param: 'id' });
}
