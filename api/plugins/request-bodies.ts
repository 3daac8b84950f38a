import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { trimBlanks } from '../../http/header-text';
import { bearerKey } from './authentication';
import { headerValues } from '../../http/header-values';

/** Longest JSON body; a longer one is a 413 (contract §7.1). */
export const MAX_JSON_BYTES = 1024 * 1024;

const MEDIA_TYPE = /^\s*[\w!#$&^.+*'`|~%-]+\/[\w!#$&^.+*'`|~%-]+\s*(?:;|$)/;

/**
 * Bodies reach the routes as they came: JSON as one buffer, parsed by the routes that want one; a form stays on the wire until its route pulls it. In place of a body
 * that cannot be taken stands the fault, for the route that wants one: thrown by a parser it would
 * make the framework cut the connection under its answer.
 */
export function addBodyParsers(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addHook('onRequest', async ({ raw }) => {
    if (!MEDIA_TYPE.test(raw.headers['content-type'] ?? '')) delete raw.headers['content-type'];
  });
  app.addContentTypeParser(/^multipart\/form-data\b/i, async () => undefined);
  app.addContentTypeParser('*', (request: FastifyRequest) => collect(request));
}

/** What keeps a body from being read at all: nobody here unpacks one. */
export function codingFault({ headers }: FastifyRequest): NightshiftError | null {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  const codings = [...codingsOf(content), ...codingsOf(transfer)];
  const other = codings.find((coding) => coding !== 'identity' && coding !== 'chunked');
  if (other === undefined) return null;
  const message = `The body of the request is encoded with ${other}: send it as it is.`;
  return new NightshiftError('unsupported_encoding', message);
}

/**
 * A web page may send JSON under the content type of a form to any server, and the browser does not ask
 * that server first. It asks for `application/json`, and for a request with a key. So one of the two must
 * be there; samples of curl send their key, and the content type of a form.
 */
function typeFault(request: FastifyRequest): NightshiftError | null {
  const type = request.raw.headers['content-type'] ?? '';
  if (trimBlanks(type.split(';', 1)[0] ?? '').toLowerCase() === 'application/json') return null;
  if (headerValues(request, 'authorization').some((value) => bearerKey(value) !== null))
    return null;
  const given = type === '' ? 'none' : `'${trimBlanks(type).slice(0, 100)}'`;
  const message = `Unsupported content type: ${given}. This API method only accepts 'application/json' requests.`;
  return new NightshiftError('unsupported_media_type', message);
}

function codingsOf(header: string | undefined): string[] {
  const names = (header ?? '').toLowerCase().split(',');
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

async function collect(request: FastifyRequest): Promise<Buffer | NightshiftError> {
  const { raw } = request;
  try {
    const fault = codingFault(request);
    if (fault !== null) return fault;
    if (Number(raw.headers['content-length'] ?? 0) > MAX_JSON_BYTES) return tooLarge();
    const body = await gather(raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
    return Buffer.isBuffer(body) && body.length > 0 ? (typeFault(request) ?? body) : body;
  } catch (cause) {
    const message = 'The connection ended before the body of the request.';
    return new NightshiftError('invalid_request', message, { cause });
  } finally {
    // Whatever else comes is read and dropped, so that the connection can carry the answer.
    raw.resume();
  }
}

async function gather(body: AsyncIterable<Buffer>): Promise<Buffer | NightshiftError> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_JSON_BYTES) return tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(): NightshiftError {
  return new NightshiftError('payload_too_large', 'The body of the request is too large.');
}
