import type { FastifyInstance } from 'fastify';
import { addResource } from '../../http/resource';
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
          answers: await isAnswering(check),
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

async function isAnswering(check: () => Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), CHECK_TIMEOUT_MS);
  });
  const answered = check().then(
    () => true,
    () => false,
  );
  return Promise.race([answered, late]).finally(() => clearTimeout(timer));
}
