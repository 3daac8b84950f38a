import type { FastifyInstance } from 'fastify';

const CLOSE_IDLE_EVERY_MS = 50;

/**
 * Lets `close()` resolve as soon as the last answer is sent. The framework closes idle connections only
 * once, when the close begins. A connection that becomes idle later would stay open for its keep-alive
 * time.
 */
export function addDrain(app: FastifyInstance): void {
  let timer: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    timer = setInterval(() => app.server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  });
  app.addHook('onClose', async () => clearInterval(timer));
}
