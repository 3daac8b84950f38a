import { createServer, type Server, type ServerResponse } from 'node:http';
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

const cleanups: (() => Promise<unknown> | void)[] = [];

/** Closes everything that a test opened, the newest first. */
export async function closeAll(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

export function onClose(cleanup: () => Promise<unknown> | void): void {
  cleanups.push(cleanup);
}

/** A TCP server: its connections get `answer`, and everything that they received so far. */
export async function rawServer(
  answer: (socket: Socket, received: Buffer) => void,
): Promise<{ url: string; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      answer(socket, received);
    });
  });
  await listen(server);
  onClose(() => {
    sockets.forEach((socket) => socket.destroy());
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: urlOf(server), sockets };
}

export interface Front {
  readonly url: string;
  readonly port: number;
  readonly backend: ProxiedBackend;
  /** The ends of all exchanges, in order. */
  readonly ends: ExchangeEnd[];
  /** Resolves when `count` exchanges have ended. */
  ended(count?: number): Promise<ExchangeEnd>;
  readonly responses: ServerResponse[];
  server: Server;
}

/** A server that passes every request through to one backend. */
export async function frontOf(
  url: string,
  changes: Partial<PassThroughOptions> & { authorization?: string } = {},
): Promise<Front> {
  const { authorization = null, ...given } = changes;
  const backend = openProxiedBackend({
    url,
    authorization,
    tls: {},
    connections: 2_000,
    connectTimeoutMs: 2_000,
  });
  const ends: ExchangeEnd[] = [];
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = chunks.length === 0 ? null : Buffer.concat(chunks);
      void passThrough({
        backend,
        method: request.method ?? 'POST',
        path: request.url ?? '/',
        headers: request.rawHeaders,
        ownHeaders: [],
        keepsAuthorization: true,
        body,
        response,
        requestTimeoutMs: 20_000,
        stallTimeoutMs: 10_000,
        ...given,
      }).then((end) => {
        ends.push(end);
        if (!end.isHeadSent && !response.destroyed) response.writeHead(502).end(end.outcome);
      });
    });
  });
  await listen(server);
  onClose(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await backend.close();
  });
  const ended = async (count = 1): Promise<ExchangeEnd> => {
    const end = await until(() => ends[count - 1], 10_000, `the end of exchange ${count}`, 2);
    return end;
  };
  return { url: urlOf(server), port: portOf(server), backend, ends, ended, responses, server };
}

/** Sends raw bytes to a port. */
export function rawClient(port: number, request: string): { socket: Socket; text(): string } {
  const chunks: Buffer[] = [];
  const socket = connect(port, '127.0.0.1', () => socket.write(request, 'latin1'));
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
  onClose(() => void socket.destroy());
  return { socket, text: () => Buffer.concat(chunks).toString('latin1') };
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
