import type { FastifyInstance } from 'fastify';
import type { Authentication } from '../../http/openapi/security';
import { addResource } from '../../http/resource';
import { gatewayDocument } from './document';

/** `/openapi.json`: the document of this gateway. It needs no key, as that of the API. */
export function addOpenApiRoute(app: FastifyInstance, auth: Authentication): void {
  addResource(app, '/openapi.json', { GET: async () => gatewayDocument(auth) });
}
