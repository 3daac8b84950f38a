import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { RETRY_AFTER_SEC } from '../errors/error-envelope';
import { type BareAnswer, endWith } from './bare-answer';
import type { OnClosed } from './closed-reason';
import { type ConnectionLimits, ConnectionTable, type ReachedLimit } from './connection-table';
import { watchExchanges } from './exchanges';

/** {@link ConnectionLimits}, and the name of the setting that a refusal mentions. */
export interface NamedConnectionLimits extends ConnectionLimits {
  readonly perAddressSetting: string;
}

/** How many refused connections stay open at once, so that their clients can read the answer. */
const MAX_REFUSED = 256;

/**
 * Keeps the number of open connections within the limits (docs/design/api-contract.md#connections). At
 * a limit, the longest idle connection is closed. If none is idle, the new connection is refused with an
 * answer: a refused client can act, but a client that waits in a backlog cannot.
 */
export function limitConnections(
  server: Server,
  limits: NamedConnectionLimits,
  onClosed: OnClosed,
): void {
  const table = new ConnectionTable(limits, (socket, hasPartialRequest) => {
    onClosed('evicted');
    evict(socket, hasPartialRequest);
  });
  const refuse = createRefusal(limits);
  const serve = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const reached = table.admit(socket);
    if (reached === null) for (const listener of serve) listener.call(server, socket);
    else {
      onClosed(reached === 'total' ? 'max_connections' : 'max_connections_per_address');
      refuse(socket, reached);
    }
  });
  watchExchanges(server, {
    begin: ({ request }) => table.begin(request.socket),
    end: ({ request }) => table.end(request.socket),
  });
}

function evict(socket: Socket, hasPartialRequest: boolean): void {
  if (hasPartialRequest) endWith(socket, EVICTED);
  else socket.destroy();
}

/**
 * Refuses sockets that are not passed to the HTTP server. Their bytes are read and dropped: unread bytes
 * would reset the connection before the client has read the answer.
 */
function createRefusal(limits: NamedConnectionLimits) {
  let refused = 0;
  return (socket: Socket, reached: ReachedLimit): void => {
    socket.on('error', () => socket.destroy());
    if (refused >= MAX_REFUSED) {
      socket.destroy();
      return;
    }
    refused++;
    socket.once('close', () => refused--);
    socket.resume();
    endWith(socket, reached === 'total' ? TOO_MANY : tooManyOfAddress(limits));
  };
}

const RETRY_AFTER = { 'retry-after': RETRY_AFTER_SEC[503] };
const TOO_MANY: BareAnswer = {
  status: 503,
  type: 'server_error',
  message: 'The service has too many open connections. Please try again.',
  headers: RETRY_AFTER,
};
const EVICTED: BareAnswer = {
  status: 503,
  type: 'server_error',
  message: 'The request took too long to arrive, and its connection was needed. Please try again.',
  headers: RETRY_AFTER,
};

function tooManyOfAddress({ perAddress, perAddressSetting }: NamedConnectionLimits): BareAnswer {
  return {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: `There are already ${perAddress} connections from your address. Close some, or send several requests over one. The operator can change the setting ${perAddressSetting}.`,
    headers: { 'retry-after': RETRY_AFTER_SEC[429] },
  };
}
