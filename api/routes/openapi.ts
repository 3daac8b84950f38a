import type { FastifyInstance } from 'fastify';
import { openApiDocument } from '../openapi/document';
import { addResource } from '../plugins/resource';

/** `/openapi.json`: what this API takes and answers, for generators and people. */
export function addOpenApiRoute(app: FastifyInstance): void {
  let document: ReturnType<typeof openApiDocument> | undefined;
  addResource(app, '/openapi.json', { GET: async () => (document ??= openApiDocument()) });
}
