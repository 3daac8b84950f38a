import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

const CLOSE_IDLE_EVERY_MS = 50;

/**
 * Lets `close()` resolve as soon as the last answer is sent. The framework closes idle connections only
 * once, when the close begins. A connection that becomes idle later would stay open for its keep-alive
 * time, and one on which no request ever came, as clients open them in advance, for as long as its client likes.
 */
export function addDrain(app: FastifyInstance): void {
  let timer: NodeJS.Timeout | undefined;
  const sockets = new Set<Socket>();
  app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const closeIdle = (): void => {
    app.server.closeIdleConnections();
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  };
  app.addHook('preClose', async () => {
    timer = setInterval(closeIdle, CLOSE_IDLE_EVERY_MS);
  });
  app.addHook('onClose', async () => clearInterval(timer));
}
