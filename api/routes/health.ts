import type { FastifyInstance } from 'fastify';
import { addResource } from '../../http/resource';
import { tryCheck } from '../../platform/readiness';
import type { RouteDeps } from '../app-deps';

const CHECK_TIMEOUT_MS = 2_000;

/** `/health`: the process runs. `/ready`: everything that it needs answers within 2 seconds. */
export function addHealthRoutes(app: FastifyInstance, { checks }: RouteDeps): void {
  addResource(app, '/health', { GET: async () => ({ status: 'ok' }) });
  addResource(app, '/ready', {
    GET: async (_request, reply) => {
      const results = await Promise.all(
        Object.entries(checks).map(async ([name, check]) => ({
          name,
          answers: (await tryCheck(check, CHECK_TIMEOUT_MS)) === 'ok',
        })),
      );
      const ready = results.every(({ answers }) => answers);
      const body = {
        status: ready ? 'ready' : 'not_ready',
        checks: Object.fromEntries(results.map(({ name, answers }) => [name, answers])),
      };
      return reply.code(ready ? 200 : 503).send(body);
    },
  });
}
