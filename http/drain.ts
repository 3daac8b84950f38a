import type { FastifyInstance } from 'fastify';

const SWEEP_EVERY_MS = 50;

/**
 * Lets `close()` end as soon as the last answer is out: a connection that becomes idle after the close
 * has begun would otherwise stay open until its keep-alive time is over.
 */
export function addDrain(app: FastifyInstance): void {
  let timer: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    timer = setInterval(() => app.server.closeIdleConnections(), SWEEP_EVERY_MS);
  });
  app.addHook('onClose', async () => clearInterval(timer));
}
