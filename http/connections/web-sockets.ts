import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The connection of a request that asks for a WebSocket. */
export interface Upgrade {
  readonly socket: Socket;
  /** What the client sent after its request. */
  readonly head: Buffer;
}

const UPGRADES = new WeakMap<IncomingMessage, Upgrade>();
const CLAIM = Symbol('claim');
/** How long a refused client may take to read the answer. */
const LINGER_MS = 2_000;

/** The connection of a request; undefined if it does not ask for a WebSocket. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return UPGRADES.get(request);
}

/**
 * The class of requests for a server on which only GET requests for a WebSocket at one of `paths` are upgrades. Node
 * takes every request with the header `Upgrade` for one as soon as somebody listens to upgrades, and stops reading its
 * body: HTTP clients that offer HTTP/2 send that header with ordinary requests.
 */
export function upgradingAt(paths: readonly string[]): typeof IncomingMessage {
  return class extends IncomingMessage {
    [CLAIM]?: boolean;

    /** Node sets it when it has read the first line, and asks for it when it has read the headers. */
    get upgrade(): boolean {
      return this[CLAIM] === true && (this.method === 'CONNECT' || isForWebSocket(this, paths));
    }

    set upgrade(claim: boolean) {
      this[CLAIM] = claim;
    }
  };
}

function isForWebSocket(request: IncomingMessage, paths: readonly string[]): boolean {
  const { method, url = '', headers } = request;
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined &&
    paths.includes(url.split('?', 1)[0] ?? '')
  );
}

/**
 * Hands upgrades to the handlers of ordinary requests, so that all rules of the server apply to them and a refusal is an
 * ordinary answer. A handler that takes the connection finds it with {@link upgradeOf}.
 */
export function serveUpgrades(server: Server): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch {
      // An earlier answer on this connection has not ended.
      socket.destroy();
      return;
    }
    response.once('finish', () => endSocket(socket));
    UPGRADES.set(request, { socket, head });
    readKeyOfSubprotocol(request);
    server.emit('request', request, response);
  });
}

/** A socket with unread bytes would reset the connection, and the client would lose the answer. */
function endSocket(socket: Socket): void {
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

const KEY_PROTOCOL = /(?:^|,)\s*openai-insecure-api-key\.([^\s,]+)/;

/** A web page cannot send the header `Authorization` with a WebSocket: OpenAI's clients name the key as a protocol. */
function readKeyOfSubprotocol(request: IncomingMessage): void {
  const key = KEY_PROTOCOL.exec(request.headers['sec-websocket-protocol'] ?? '')?.[1];
  if (key === undefined) return;
  const value = `Bearer ${key}`;
  request.headers.authorization ??= value;
  request.rawHeaders.push('Authorization', value);
}
