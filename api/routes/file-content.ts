import type { FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import type { Range } from '../../core/range';
import type { ObjectStore } from '../../storage/object-store';
import type { FileRecord } from '../../storage/postgres/files';
import type { RouteDeps } from '../app-deps';
import { invalidRequest } from '../../http/errors/error-envelope';
import { parseByteRange } from '../requests/byte-range';

/** One request for a file's bytes. */
export interface ContentExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly deps: RouteDeps;
}

/**
 * Streams a file, or one range of it (docs/design/api-contract.md#file-content).
 *
 * @throws object_missing, object_corrupt, object_store_failed
 */
export async function sendContent(
  file: FileRecord,
  { request, reply, deps }: ContentExchange,
): Promise<FastifyReply> {
  const range = requestedRange(request, file.bytes);
  reply.header('accept-ranges', 'bytes');
  if (range === 'unsatisfiable') return answerUnsatisfiable(reply, file.bytes);
  const { from, to } = range === 'whole' ? { from: 0, to: file.bytes } : range;
  // Check before the headers are sent: after that, an error can only close the connection.
  await checkObject(file, deps.store);
  if (range !== 'whole') {
    reply.code(206).header('content-range', `bytes ${from}-${to - 1}/${file.bytes}`);
  }
  reply.headers({
    'content-type': 'application/octet-stream',
    'content-length': String(to - from),
    'content-disposition': disposition(file.filename),
  });
  if (request.method === 'HEAD') return reply.send();
  return sendRange(file, { from, to }, { reply, deps });
}

async function checkObject(file: FileRecord, store: ObjectStore): Promise<void> {
  const head = await store.head(file.objectKey);
  if (head === null)
    throw new NightshiftError('object_missing', `the object of ${file.id} is gone`);
  if (head.size === file.bytes) return;
  const message = `the object of ${file.id} has ${head.size} bytes instead of ${file.bytes}`;
  throw new NightshiftError('object_corrupt', message);
}

function sendRange(
  file: FileRecord,
  range: Range,
  { reply, deps }: Pick<ContentExchange, 'reply' | 'deps'>,
): FastifyReply {
  if (range.from === range.to) return reply.send(Buffer.alloc(0));
  return reply.send(deps.store.stream(file.objectKey, range));
}

/** Our answers have no ETag, so `If-Range` never matches and the whole file is sent (RFC 9110 §13.1.5). */
function requestedRange(request: FastifyRequest, size: number) {
  if (request.headers['if-range'] !== undefined) return 'whole';
  return parseByteRange(request.headers.range, size);
}

/** Sent directly, because the error handler would remove the `Content-Range` that a 416 needs. */
function answerUnsatisfiable(reply: FastifyReply, size: number): FastifyReply {
  const message = `The requested range is not within the ${size} bytes of the file.`;
  return reply.code(416).header('content-range', `bytes */${size}`).send(invalidRequest(message));
}

/** Makes browsers save the file instead of rendering it. */
function disposition(filename: string): string {
  const encoded = encodeURIComponent(filename).replace(/['()*]/g, percent);
  return `attachment; filename*=UTF-8''${encoded}`;
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`;
}
