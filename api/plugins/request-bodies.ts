import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '../../core/errors';

/** Longest JSON body; a longer one is a 413 (contract §7.1). */
export const MAX_JSON_BYTES = 1024 * 1024;

const MEDIA_TYPE = /^\s*[\w!#$&^.+*'`|~%-]+\/[\w!#$&^.+*'`|~%-]+\s*(?:;|$)/;

/**
 * Bodies reach the routes as they came: JSON as one buffer, parsed by the routes that want one,
 * whatever its content type says; a form stays on the wire until its route pulls it. In place of a body
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
export function codingFault({ headers }: FastifyRequest): GatewayError | null {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  const codings = [...codingsOf(content), ...codingsOf(transfer)];
  const other = codings.find((coding) => coding !== 'identity' && coding !== 'chunked');
  if (other === undefined) return null;
  const message = `The body of the request is encoded with ${other}: send it as it is.`;
  return new GatewayError('unsupported_encoding', message);
}

function codingsOf(header: string | undefined): string[] {
  const names = (header ?? '').toLowerCase().split(',');
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

async function collect(request: FastifyRequest): Promise<Buffer | GatewayError> {
  const { raw } = request;
  try {
    const fault = codingFault(request);
    if (fault !== null) return fault;
    if (Number(raw.headers['content-length'] ?? 0) > MAX_JSON_BYTES) return tooLarge();
    return await gather(raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
  } catch (cause) {
    const message = 'The connection ended before the body of the request.';
    return new GatewayError('invalid_request', message, { cause });
  } finally {
    // Whatever else comes is read and dropped, so that the connection can carry the answer.
    raw.resume();
  }
}

async function gather(body: AsyncIterable<Buffer>): Promise<Buffer | GatewayError> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_JSON_BYTES) return tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(): GatewayError {
  return new GatewayError('payload_too_large', 'The body of the request is too large.');
}
