import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { bearerKey } from '../authentication/bearer-key';
import { trimBlanks } from '../headers/header-text';
import { headerValues } from '../headers/header-values';
import { collectBody, type OnBody } from './collect-body';

const JSON_TYPE = 'application/json';
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
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    const type = raw.headers['content-type'] ?? '';
    if (type !== JSON_TYPE && !MEDIA_TYPE.test(type)) delete raw.headers['content-type'];
    done();
  });
  app.addContentTypeParser(/^multipart\/form-data\b/i, async () => undefined);
  // The framework remembers the parser of a type that is named, and looks for that of any other one each time.
  app.addContentTypeParser(['application/json', '*'], (request: FastifyRequest, _payload, done) => {
    collect(request, maxBytes, (body) => done(null, body));
  });
}

/** The 415 of a compressed or otherwise encoded body; null for a plain one. */
export function encodingFault({
  headers,
}: Pick<FastifyRequest, 'headers'>): NightshiftError | null {
  const { 'content-encoding': content, 'transfer-encoding': transfer } = headers;
  if (content === undefined && transfer === undefined) return null;
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
  if (type === JSON_TYPE) return null;
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

/** Calls back with the body, or with the error that the route gets in its place. */
function collect(request: FastifyRequest, maxBytes: number, onBody: OnBody): void {
  const fault = request.is404 ? null : encodingFault(request);
  if (request.is404 || fault !== null) {
    request.raw.resume();
    return onBody(fault ?? Buffer.alloc(0));
  }
  collectBody(request, maxBytes, (body) => {
    const hasBytes = Buffer.isBuffer(body) && body.length > 0;
    onBody(hasBytes ? (typeFault(request) ?? body) : body);
  });
}
