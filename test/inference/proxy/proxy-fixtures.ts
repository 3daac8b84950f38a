import { createServer, type ServerResponse } from 'node:http';
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import type { ExchangeEnd } from '../../../inference/proxy/exchange-end';
import { passThrough } from '../../../inference/proxy/pass-through';
import type { PassThroughOptions } from '../../../inference/proxy/pass-through-options';
import { openProxiedBackend, type ProxiedBackend } from '../../../inference/proxy/proxied-backend';
import { until } from '../../support/until';

/** A request as a client sends it. */
export const POST =
  'POST /v1/chat/completions HTTP/1.1\r\nHost: front\r\nContent-Length: 2\r\n\r\n{}';

const cleanups: (() => Promise<unknown> | void)[] = [];

/** Closes everything that a test opened, the newest first. */
export async function closeAll(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

export function onClose(cleanup: () => Promise<unknown> | void): void {
  cleanups.push(cleanup);
}

/**
 * A TCP server: its connections get `answer`, and everything that they received so far. `sockets` are the open
 * connections that got a request; undici replaces a connection whose request was aborted by an idle one.
 */
export async function rawServer(
  answer: (socket: Socket, received: Buffer) => void,
): Promise<{ url: string; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    open.add(socket);
    socket
      .on('close', () => void [sockets, open].map((set) => set.delete(socket)))
      .on('error', () => undefined);
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      sockets.add(socket);
      received = Buffer.concat([received, chunk]);
      answer(socket, received);
    });
  });
  await listen(server);
  onClose(() => {
    open.forEach((socket) => socket.destroy());
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: urlOf(server), sockets };
}

export interface Front {
  readonly port: number;
  /** The ends of all exchanges, in order. */
  readonly ends: ExchangeEnd[];
  /** Resolves when `count` exchanges have ended. */
  ended(count?: number): Promise<ExchangeEnd>;
  /** Bytes written to clients, and those of them that this process still holds. */
  bytesWritten(): number;
  bufferedBytes(): number;
}

/** A server that passes every request through to one backend. */
export async function frontOf(
  url: string,
  changes: Partial<PassThroughOptions> & { authorization?: string } = {},
): Promise<Front> {
  const { authorization, ...given } = changes;
  const backend = backendAt(url, authorization);
  const ends: ExchangeEnd[] = [];
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    const { method = '', url = '' } = request;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = chunks.length === 0 ? null : Buffer.concat(chunks);
      const sent = { method, path: url, headers: request.rawHeaders, body };
      const onSettled = (end: ExchangeEnd) => {
        ends.push(end);
        if (!end.isHeadSent && !response.destroyed) response.writeHead(502).end(end.outcome);
      };
      passThrough({ ...optionsOf(backend, response), ...sent, ...given }, { onSettled });
    });
  });
  await listen(server);
  onClose(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const ended = (count = 1): Promise<ExchangeEnd> =>
    until(() => ends[count - 1], 10_000, `the end of exchange ${count}`, 2);
  const total = (of: (response: ServerResponse) => number) =>
    responses.reduce((sum, response) => sum + of(response), 0);
  return {
    port: portOf(server),
    ends,
    ended,
    bytesWritten: () => total(({ socket }) => socket?.bytesWritten ?? 0),
    bufferedBytes: () => total(({ writableLength }) => writableLength),
  };
}

/** Sends `{}` to a backend, and its answer to `response`. */
export function passTo(
  url: string,
  response: ServerResponse,
  changes: Partial<PassThroughOptions>,
): Promise<ExchangeEnd> {
  const options = { ...optionsOf(backendAt(url), response), ...changes };
  return new Promise((resolve) => passThrough(options, { onSettled: resolve }));
}

function backendAt(url: string, authorization: string | null = null): ProxiedBackend {
  const limits = { connections: 2_000, connectTimeoutMs: 2_000 };
  const backend = openProxiedBackend({ url, authorization, tls: {}, ...limits });
  onClose(() => backend.close());
  return backend;
}

function optionsOf(backend: ProxiedBackend, response: ServerResponse): PassThroughOptions {
  return {
    backend,
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [],
    ownHeaders: [],
    keepsAuthorization: true,
    body: Buffer.from('{}'),
    response,
    requestTimeoutMs: 20_000,
    stallTimeoutMs: 10_000,
  };
}

export interface RawClient {
  readonly socket: Socket;
  /** Everything received so far. */
  bytes(): Buffer;
  text(): string;
}

/** Sends raw bytes to a port. */
export function rawClient(port: number, request: string): RawClient {
  const chunks: Buffer[] = [];
  const socket = connect(port, '127.0.0.1', () => socket.write(request, 'latin1'));
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
  onClose(() => void socket.destroy());
  const bytes = () => Buffer.concat(chunks);
  return { socket, bytes, text: () => bytes().toString('latin1') };
}

export async function listen(server: TcpServer): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
}

export function portOf(server: TcpServer): number {
  return (server.address() as AddressInfo).port;
}

function urlOf(server: TcpServer): string {
  return `http://127.0.0.1:${portOf(server)}`;
}
