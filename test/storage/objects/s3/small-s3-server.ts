import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { S3StoreOptions } from '../../../../storage/objects/s3/s3-bucket';

/** An S3 server in memory for single objects, with faults that a real one shows rarely. */
export interface SmallS3Server {
  readonly options: S3StoreOptions;
  /** Whether a write of an existing key with `If-None-Match: *` is refused. */
  honoursConditions: boolean;
  /** How many of the next requests are answered with 503. */
  busy: number;
  close(): Promise<void>;
}

interface StoredObject {
  readonly bytes: Buffer;
  readonly writer: string;
}

/** Starts a server with one bucket. It checks no signatures. */
export async function startSmallS3Server(): Promise<SmallS3Server> {
  const objects = new Map<string, StoredObject>();
  const state = { honoursConditions: true, busy: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (state.busy > 0) {
        state.busy--;
        response.writeHead(503, { 'retry-after': '0' }).end();
        return;
      }
      answer(request, response, { objects, body: Buffer.concat(chunks), ...state });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: 'a', secretAccessKey: 's' };
  return Object.assign(state, {
    options: { bucket: 'bucket', endpoint, usePathStyle: true, region: 'r', credentials },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

interface Turn {
  readonly objects: Map<string, StoredObject>;
  readonly body: Buffer;
  readonly honoursConditions: boolean;
}

function answer(request: IncomingMessage, response: ServerResponse, turn: Turn): void {
  const key = (request.url ?? '').split('?')[0] ?? '';
  const known = turn.objects.get(key);
  if (request.method === 'PUT') {
    if (known !== undefined && turn.honoursConditions && request.headers['if-none-match'] === '*') {
      response.writeHead(412).end();
      return;
    }
    const writer = String(request.headers['x-amz-meta-writer'] ?? '');
    turn.objects.set(key, { bytes: turn.body, writer });
    response.writeHead(200, { etag: '"1"' }).end();
    return;
  }
  if (/^\/bucket\/?$/.test(key)) {
    response.writeHead(200).end();
    return;
  }
  if (known === undefined) {
    response.writeHead(404).end();
    return;
  }
  const { bytes, writer } = known;
  const headers = { etag: '"1"', 'content-length': bytes.length, 'x-amz-meta-writer': writer };
  response.writeHead(200, headers).end(request.method === 'HEAD' ? undefined : bytes);
}
