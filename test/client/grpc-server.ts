import { readFileSync } from 'node:fs';
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';

const FOLDER = join(__dirname, 'certificates');

/** Path of a certificate or key below `certificates/`. */
export const pem = (name: string): string => join(FOLDER, `${name}.pem`);

/** One call as the server saw it. */
export interface SeenCall {
  readonly authorization: string | undefined;
  /** Common name in the client's certificate. */
  readonly client: string | undefined;
  /** The name that the client asked for. */
  readonly serverName: string | false | null;
}

/** A server that answers every gRPC call with an empty message, over TLS with client certificates. */
export interface GrpcServer {
  readonly address: string;
  readonly calls: readonly SeenCall[];
  /** From now on calls wait, until the returned function lets them go on. */
  hold(): () => void;
  close(): Promise<void>;
}

export async function startGrpcServer(): Promise<GrpcServer> {
  const calls: SeenCall[] = [];
  const sessions = new Set<ServerHttp2Session>();
  let gate = Promise.resolve();
  const server = createSecureServer({
    cert: readFileSync(pem('server')),
    key: readFileSync(pem('server-key')),
    ca: readFileSync(pem('ca')),
    requestCert: true,
    rejectUnauthorized: true,
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    const socket = stream.session?.socket as TLSSocket;
    const { CN } = socket.getPeerCertificate().subject ?? {};
    const { authorization } = headers;
    calls.push({
      authorization,
      client: String(CN),
      serverName: (socket as { servername?: string }).servername ?? null,
    });
    void gate.then(() => answer(stream));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    hold: () => {
      let release = (): void => undefined;
      gate = new Promise((resolve) => (release = resolve));
      return () => {
        gate = Promise.resolve();
        release();
      };
    },
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

const EMPTY_MESSAGE = Buffer.alloc(5);

function answer(stream: ServerHttp2Stream): void {
  if (stream.destroyed) return;
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(EMPTY_MESSAGE);
}
