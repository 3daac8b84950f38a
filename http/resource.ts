import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError } from '../core/errors';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * The methods of one path. `GET` also answers `HEAD`, for which the framework drops the body. A handler
 * that streams checks `request.method` itself, so that it does not open the stream.
 */
export interface Resource {
  readonly GET?: Handler;
  readonly POST?: Handler;
  readonly DELETE?: Handler;
}

/** Registers a path with its methods; every other method gets a 405 with the allowed ones in `Allow`. */
export function addResource(app: FastifyInstance, url: string, resource: Resource): void {
  const allowed = Object.keys(resource).flatMap((name) => (name === 'GET' ? [name, 'HEAD'] : name));
  for (const [name, handler] of Object.entries(resource) as [string, Handler][]) {
    app.route({ url, method: name === 'GET' ? ['GET', 'HEAD'] : [name], handler });
  }
  const others = app.supportedMethods.filter((method) => !allowed.includes(method));
  app.route({
    url,
    method: others,
    // Answer before the body is read: it may be malformed or large.
    onRequest: async (request, reply) => {
      reply.header('allow', allowed.join(', '));
      throw notAllowed(request);
    },
    handler: async (request) => {
      throw notAllowed(request);
    },
  });
}

function notAllowed(request: FastifyRequest): NightshiftError {
  const path = request.url.split('?', 1)[0] ?? '';
  return new NightshiftError('method_not_allowed', `Not allowed to ${request.method} on ${path}.`);
}
