import type { FastifyInstance } from 'fastify';

/** Longest JSON body; a longer one is a 413 (contract §7.1). */
export const MAX_JSON_BYTES = 1024 * 1024;

/**
 * Bodies reach the routes as they came: JSON as one buffer, parsed by the routes that want one,
 * whatever its content type says; a form stays on the wire until its route pulls it.
 */
export function addBodyParsers(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^multipart\/form-data\b/i, (_request, _payload, done) => {
    done(null, undefined);
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
}
