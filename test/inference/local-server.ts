import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { GatewayConfig } from '../../platform/config-schema';
import type { PlainRequest } from '../support/promises-of-sending';

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface LocalServer {
  readonly url: string;
  readonly port: number;
  readonly received: Received[];
  /** Connections accepted so far. */
  connections(): number;
  close(): Promise<void>;
}

export type Answer = (request: Received, response: ServerResponse, socket: Socket) => void;

/**
 * A real HTTP(S) server that records every request and lets `answer` reply. It listens on a free port,
 * unless `atPort` is given, for a server that comes back.
 */
export async function startLocalServer(
  answer: Answer,
  tls?: ServerOptions,
  atPort = 0,
): Promise<LocalServer> {
  const received: Received[] = [];
  let connections = 0;
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const entry = { method, url, headers, body: Buffer.concat(chunks) };
      received.push(entry);
      answer(entry, response, request.socket);
    });
  };
  const server: Server = tls ? createTlsServer(tls, onRequest) : createServer(onRequest);
  // By default Node drops fields beyond 1,000.
  server.maxHeadersCount = 0;
  server.on(tls ? 'secureConnection' : 'connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(atPort, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    received,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function gatewayOf(url: string, changes: Partial<GatewayConfig> = {}): GatewayConfig {
  return {
    url,
    tls_insecure_skip_verify: false,
    send_fairness_header: false,
    http_client: 'nightshift',
    request_timeout: 5_000,
    audio_request_timeout: 60_000,
    max_retries: 3,
    initial_backoff: 1_000,
    max_backoff: 60_000,
    ...changes,
  };
}

export function requestOf(changes: Partial<PlainRequest> = {}): PlainRequest {
  return {
    path: '/v1/chat/completions',
    body: Buffer.from('{"model":"m"}'),
    requestId: 'batch_req_1',
    deadlineMs: Date.now() + 60_000,
    headers: {},
    ...changes,
  };
}

/** Resolves when `condition` holds; throws after 10 s, so that a test that fails also ends. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() >= deadline) throw new Error(`waited 10 s for ${condition.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
