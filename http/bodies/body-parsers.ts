import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { bearerKey } from '../authentication/bearer-key';
import { trimBlanks } from '../headers/header-text';
import { headerValues } from '../headers/header-values';
import { BodyBuffer } from './body-buffer';
import { bodyChunks } from './body-chunks';

const MEDIA_TYPE = /^\s*[\w!#$&^.+*'`|~%-]+\/[\w!#$&^.+*'`|~%-]+\s*(?:;|$)/;

/**
 * Replaces the framework's parsers. A form is not read until its route reads it. The route gets any other
 * body as a buffer, for `parseJsonBody`. If a body is refused, the route gets the error in place of the
 * body: if a parser threw it, the framework would close the connection before the client has read the
 * answer. The body of an unknown route is not collected, so nobody can use memory before they are known.
 * The bytes of a collected body count in `bodyPlace`; a body without room is an `unavailable` error.
 */
export function addBodyParsers(app: FastifyInstance, maxBytes: number): void {
  app.removeAllContentTypeParsers();
  app.decorateRequest('bodyPlace', null);
  // The framework answers 415 itself if it cannot parse the content type.
  app.addHook('onRequest', async ({ raw }) => {
    if (!MEDIA_TYPE.test(raw.headers['content-type'] ?? '')) delete raw.headers['content-type'];
  });
  app.addContentTypeParser(/^multipart\/form-data\b/i, async () => undefined);
  app.addContentTypeParser('*', (request: FastifyRequest) => collect(request, maxBytes));
}

/** The 415 of a compressed or otherwise encoded body; null for a plain one. */
export function encodingFault({
  headers,
}: Pick<FastifyRequest, 'headers'>): NightshiftError | null {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  const encodings = [...encodingsOf(content), ...encodingsOf(transfer)];
  const other = encodings.find((encoding) => encoding !== 'identity' && encoding !== 'chunked');
  if (other === undefined) return null;
  const message = `The body of the request is encoded with ${other}: send it without an encoding.`;
  return new NightshiftError('unsupported_encoding', message);
}

/**
 * Protects against requests of foreign web pages (docs/design/api-contract.md#web-pages). A browser lets
 * any page post JSON to any server under the content type of a form. Before it sends `application/json` or
 * an `Authorization` header, it asks the server for permission. So a request needs one of the two. The
 * content type alone is not required: OpenAI's curl examples send a key, and JSON as a form.
 */
function typeFault(request: FastifyRequest): NightshiftError | null {
  const type = request.raw.headers['content-type'] ?? '';
  if (trimBlanks(type.split(';', 1)[0] ?? '').toLowerCase() === 'application/json') return null;
  const hasKey = headerValues(request, 'authorization').some((value) => bearerKey(value) !== null);
  if (hasKey) return null;
  const given = type === '' ? 'none' : `'${trimBlanks(type).slice(0, 100)}'`;
  const message = `Unsupported content type: ${given}. This API method only accepts 'application/json' requests.`;
  return new NightshiftError('unsupported_media_type', message);
}

function encodingsOf(header: string | undefined): string[] {
  const names = (header ?? '').toLowerCase().split(',');
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

async function collect(
  request: FastifyRequest,
  maxBytes: number,
): Promise<Buffer | NightshiftError> {
  if (request.is404) {
    request.raw.resume();
    return Buffer.alloc(0);
  }
  try {
    const body = await read(request, maxBytes);
    return body.length > 0 ? (typeFault(request) ?? body) : body;
  } catch (error) {
    if (isNightshiftError(error)) return error;
    throw error;
  }
}

async function read(request: FastifyRequest, maxBytes: number): Promise<Buffer> {
  const buffer = bufferFor(request, maxBytes);
  const fault =
    encodingFault(request) ?? lengthFault(request, maxBytes) ?? (buffer.open() ? null : noRoom());
  if (fault !== null) {
    request.raw.resume();
    throw fault;
  }
  for await (const chunk of bodyChunks(request, { maxBytes, tooLong: tooLarge, cut })) {
    if (!buffer.append(chunk)) throw noRoom();
  }
  return buffer.finish();
}

function bufferFor({ raw, bodyPlace }: FastifyRequest, maxBytes: number): BodyBuffer {
  const { 'content-length': declared } = raw.headers;
  return new BodyBuffer({
    declaredBytes: declared === undefined ? null : Number(declared),
    maxBytes,
    reserve: (bytes) => bodyPlace?.reserve(bytes) ?? true,
  });
}

function lengthFault({ raw }: FastifyRequest, maxBytes: number): NightshiftError | null {
  return Number(raw.headers['content-length'] ?? 0) > maxBytes ? tooLarge() : null;
}

function tooLarge(): NightshiftError {
  return new NightshiftError('payload_too_large', 'The body of the request is too large.');
}

function noRoom(): NightshiftError {
  return new NightshiftError('unavailable', 'There is no room for the body of the request.');
}

function cut(cause: unknown): NightshiftError {
  const message = 'The connection ended before the body of the request.';
  return new NightshiftError('invalid_request', message, { cause });
}
