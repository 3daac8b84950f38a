import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { watchExchanges } from './exchanges';

/**
 * Ends the answers of a connection that closes before their turn. A client may send a request before the answer to the
 * previous one (RFC 9112, section 9.3.2). Node connects the second answer to the socket when the first one is sent, and
 * reports only the end of connected answers. Without this, the work for the others goes on with nobody to read it.
 */
export function endPipelinedAnswers(server: Server): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  watchExchanges(server, {
    begin: ({ request: { socket }, response }) => {
      // It is its turn already, as for every client that does not pipeline.
      if (response.socket !== null) return;
      const answers = waiting.get(socket) ?? endedWith(socket);
      waiting.set(socket, answers.add(response));
      response.once('close', () => answers.delete(response));
    },
  });
}

/** A set whose answers end with the connection. */
function endedWith(socket: Socket): Set<ServerResponse> {
  const answers = new Set<ServerResponse>();
  socket.once('close', () => endAll(answers));
  return answers;
}

function endAll(answers: ReadonlySet<ServerResponse>): void {
  for (const response of [...answers]) {
    if (response.socket !== null) continue;
    response.destroy();
    response.emit('close');
  }
}
