import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import { type BareAnswer, endWith } from './bare-answer';
import { RETRY_AFTER_SEC } from './error-envelope';

/** How many connections may be open at once. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

interface Connection {
  readonly address: string;
  /** Requests that have no complete answer yet. */
  running: number;
  /** `performance.now()` of the last answer, or of the start. */
  idleSinceMs: number;
  /** Bytes that had been read then. */
  readBytes: number;
}

/** A connection this young is about to send its request: it does not count as idle. */
const FRESH_MS = 1_000;
/** Refused connections that may still be open, so that their clients can read why. */
const MAX_REFUSED = 256;

/**
 * Keeps the number of open connections below the limits. At a limit, the longest idle connection makes
 * room; if none is idle, the new one is answered at once and closed. Nobody waits for nothing.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const book = new ConnectionBook(limits);
  const serve = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const refusal = book.admit(socket);
    if (refusal !== null) refuse(socket, refusal, book);
    else for (const listener of serve) listener.call(server, socket);
  });
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    book.begin(socket);
    response.once('close', () => book.end(socket));
  });
}

class ConnectionBook {
  readonly #limits: ConnectionLimits;
  readonly #open = new Map<Socket, Connection>();
  /** In the order in which they became idle. */
  readonly #idle = new Set<Socket>();
  readonly #perAddress = new Map<string, number>();
  refused = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Takes the connection, or says why it cannot. */
  admit(socket: Socket): BareAnswer | null {
    const address = addressOf(socket);
    if (this.#countOf(address) >= this.#limits.perAddress && !this.#makeRoom(address)) {
      return tooManyOfAddress(this.#limits.perAddress);
    }
    if (this.#open.size >= this.#limits.total && !this.#makeRoom(null)) return TOO_MANY;
    const idleSinceMs = performance.now();
    this.#open.set(socket, { address, running: 0, idleSinceMs, readBytes: 0 });
    this.#idle.add(socket);
    this.#perAddress.set(address, this.#countOf(address) + 1);
    socket.once('close', () => this.#forget(socket));
    return null;
  }

  begin(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    connection.running++;
    this.#idle.delete(socket);
  }

  end(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined || --connection.running > 0) return;
    connection.idleSinceMs = performance.now();
    connection.readBytes = socket.bytesRead;
    this.#idle.add(socket);
  }

  #countOf(address: string): number {
    return this.#perAddress.get(address) ?? 0;
  }

  #forget(socket: Socket): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    this.#open.delete(socket);
    this.#idle.delete(socket);
    const left = this.#countOf(connection.address) - 1;
    if (left > 0) this.#perAddress.set(connection.address, left);
    else this.#perAddress.delete(connection.address);
  }

  /** Closes the longest idle connection, of one address if one is given. */
  #makeRoom(address: string | null): boolean {
    const nowMs = performance.now();
    for (const socket of this.#idle) {
      const connection = this.#open.get(socket);
      if (connection === undefined) continue;
      if (nowMs - connection.idleSinceMs < FRESH_MS) return false;
      if (address !== null && connection.address !== address) continue;
      this.#forget(socket);
      // Part of a request has come: its sender hears why it is not answered.
      if (socket.bytesRead > connection.readBytes) endWith(socket, MADE_ROOM);
      else socket.destroy();
      return true;
    }
    return false;
  }
}

const RETRY_AFTER = { 'retry-after': RETRY_AFTER_SEC[503] ?? '2' };
const TOO_MANY: BareAnswer = {
  status: 503,
  type: 'server_error',
  message: 'The service has too many open connections. Please try again.',
  headers: RETRY_AFTER,
};
const MADE_ROOM: BareAnswer = {
  status: 503,
  type: 'server_error',
  message: 'The request took too long to arrive, and its connection was needed. Please try again.',
  headers: RETRY_AFTER,
};

function tooManyOfAddress(limit: number): BareAnswer {
  return {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: `There are already ${limit} connections from your address. Close some, or send several requests over one. The operator can change the setting api.max_connections_per_address.`,
    headers: { 'retry-after': RETRY_AFTER_SEC[429] ?? '5' },
  };
}

/** The server never sees this socket: what it sends is read and dropped, so that the answer arrives. */
function refuse(socket: Socket, answer: BareAnswer, book: ConnectionBook): void {
  socket.on('error', () => socket.destroy());
  if (book.refused >= MAX_REFUSED) {
    socket.destroy();
    return;
  }
  book.refused++;
  socket.once('close', () => book.refused--);
  socket.resume();
  endWith(socket, answer);
}

/** An IPv6 client has a whole network of addresses: the first 64 bits count. */
function addressOf({ remoteAddress = '' }: Socket): string {
  const mapped = remoteAddress.toLowerCase().startsWith('::ffff:') && remoteAddress.includes('.');
  if (mapped) return remoteAddress.slice('::ffff:'.length);
  return isIPv6(remoteAddress) ? networkOf(remoteAddress) : remoteAddress;
}

function networkOf(address: string): string {
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const behind = tail === '' ? 0 : tail.split(':').length;
    while (groups.length + behind < 8) groups.push('0');
  }
  return groups.slice(0, 4).join(':');
}
