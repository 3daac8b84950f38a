import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../openapi/document';
import type { RouteDeps } from '../app-deps';
import { addResource } from '../../http/resource';

/** `/openapi.json`: the document of this installation, made on the first request. */
export function addOpenApiRoute(app: FastifyInstance, { config }: Pick<RouteDeps, 'config'>): void {
  let document: ReturnType<typeof openApiDocument> | undefined;
  addResource(app, '/openapi.json', {
    GET: async () =>
      (document ??= openApiDocument({ auth: config.auth, endpoints: config.batch.endpoints })),
  });
}
