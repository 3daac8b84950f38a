import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * What may be done with one path. `GET` answers `HEAD` too, with the headers alone; a handler that
 * would stream looks at `request.method` and sends nothing.
 */
export interface Resource {
  readonly GET?: Handler;
  readonly POST?: Handler;
  readonly DELETE?: Handler;
}

/** Registers a path: its methods, and for every other one the 405 that names them in `Allow`. */
export function addResource(app: FastifyInstance, url: string, resource: Resource): void {
  const allowed = Object.keys(resource).flatMap((name) => (name === 'GET' ? [name, 'HEAD'] : name));
  for (const [name, handler] of Object.entries(resource) as [string, Handler][]) {
    app.route({ url, method: name === 'GET' ? ['GET', 'HEAD'] : [name], handler });
  }
  const others = app.supportedMethods.filter((method) => !allowed.includes(method));
  app.route({
    url,
    method: others,
    // Before the body is read: nobody is going to look at it.
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
