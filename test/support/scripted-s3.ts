import { createHash } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { S3StoreOptions } from '../../storage/objects/s3/s3-bucket';

/** A request as the script sees it. */
export interface S3Call {
  readonly method: string;
  /** Without the bucket; empty for requests to the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** How a request fails. */
export type S3Fault =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly code?: string;
      readonly headers?: Record<string, string>;
    }
  /** Closes the connection without doing anything. */
  | { readonly kind: 'reset' }
  /** Does what was asked, then closes the connection without an answer. */
  | { readonly kind: 'lost answer' }
  /** Never answers. */
  | { readonly kind: 'hang' }
  /** Answers after this time. */
  | { readonly kind: 'late'; readonly ms: number }
  /** Sends the head and so many bytes of the body, then closes the connection, or sends nothing more. */
  | { readonly kind: 'cut' | 'stall'; readonly bytes: number }
  /** Sends the whole object, although a range was asked for. */
  | { readonly kind: 'ignore range' }
  /** Writes an object that exists, although that was forbidden. */
  | { readonly kind: 'ignore condition' };

interface StoredObject {
  readonly bytes: Buffer;
  readonly headers: Record<string, string>;
}

/** A server that speaks as much of S3 as the store uses, on one bucket, and fails as the test says. */
export interface ScriptedS3 {
  readonly endpoint: string;
  readonly objects: Map<string, StoredObject>;
  /** Ids of uploads that were begun and neither completed nor aborted. */
  readonly uploads: Map<string, Map<number, Buffer>>;
  readonly calls: S3Call[];
  /** Open connections that carry an answer that is not finished. */
  busyConnections(): number;
  /** Connections that clients have opened so far. */
  connections(): number;
  /** Returns the fault of a request, or nothing. Called before the request is carried out. */
  script: (call: S3Call) => S3Fault | undefined;
  close(): Promise<void>;
}

const BUCKET = 'bucket';

/** How `openS3Store` reaches the server. */
export function scriptedOptions({ endpoint }: ScriptedS3): S3StoreOptions {
  return {
    bucket: BUCKET,
    endpoint,
    region: 'us-east-1',
    usePathStyle: true,
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
  };
}

/** Serves on loopback. Signatures are not checked. */
export async function startScriptedS3(): Promise<ScriptedS3> {
  const busy = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    busy.add(response);
    response.once('close', () => busy.delete(response));
    serve(scripted, request, response).catch((error: unknown) => {
      // Clients give up requests that they are still sending.
      if (!request.errored) throw error;
    });
  });
  let connections = 0;
  server.on('connection', () => connections++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const scripted: ScriptedS3 = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects: new Map(),
    uploads: new Map(),
    calls: [],
    busyConnections: () => busy.size,
    connections: () => connections,
    script: () => undefined,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return scripted;
}

interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer | string;
}

async function serve(
  s3: ScriptedS3,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const url = new URL(request.url ?? '', s3.endpoint);
  const call: S3Call = {
    method: request.method ?? '',
    key: url.pathname.slice(`/${BUCKET}/`.length),
    query: url.searchParams,
    headers: request.headers,
    body: Buffer.concat(chunks),
  };
  s3.calls.push(call);
  const fault = s3.script(call);
  if (fault?.kind === 'hang') return;
  if (fault?.kind === 'late') await delay(fault.ms);
  if (fault?.kind === 'reset') return void response.destroy();
  if (fault?.kind === 'answer') {
    const { status, code, headers = {} } = fault;
    return send(response, call, failure(status, code ?? '', headers));
  }
  const answer = carryOut(
    s3,
    fault?.kind === 'ignore condition' ? unconditional(call) : call,
    fault,
  );
  if (fault?.kind === 'lost answer') return void response.destroy();
  if (fault?.kind !== 'cut' && fault?.kind !== 'stall') return send(response, call, answer);
  const body = Buffer.from(answer.body ?? '');
  response.writeHead(answer.status, { ...answer.headers, 'content-length': body.length });
  response.write(body.subarray(0, fault.bytes), () => {
    if (fault.kind === 'cut') response.destroy();
  });
}

function send(response: ServerResponse, { method }: S3Call, answer: Answer): void {
  const body = Buffer.from(answer.body ?? '');
  response.writeHead(answer.status, { 'content-length': body.length, ...answer.headers });
  response.end(method === 'HEAD' ? undefined : body);
}

function failure(status: number, code: string, headers: Record<string, string> = {}): Answer {
  const body = code === '' ? '' : `<Error><Code>${code}</Code><Message>scripted</Message></Error>`;
  return { status, headers, body };
}

function unconditional(call: S3Call): S3Call {
  return { ...call, headers: { ...call.headers, 'if-none-match': undefined } };
}

function carryOut(s3: ScriptedS3, call: S3Call, fault: S3Fault | undefined): Answer {
  const { method, key, query } = call;
  if (key === '') return { status: 200, body: '<ListBucketResult></ListBucketResult>' };
  if (query.has('uploads')) return begin(s3, call);
  if (query.has('partNumber')) return putPart(s3, call);
  if (query.has('uploadId')) return endUpload(s3, call);
  if (method === 'PUT') return create(s3, call, call.body);
  if (method === 'DELETE') {
    s3.objects.delete(key);
    return { status: 204 };
  }
  return get(s3, call, fault?.kind === 'ignore range');
}

function create(s3: ScriptedS3, call: S3Call, bytes: Buffer, from = call.headers): Answer {
  const isTaken = s3.objects.has(call.key);
  if (isTaken && call.headers['if-none-match'] === '*') return failure(412, 'PreconditionFailed');
  s3.objects.set(call.key, { bytes, headers: metadataOf(from) });
  return { status: 200, headers: { etag: etagOf(bytes) } };
}

function metadataOf(headers: IncomingHttpHeaders): Record<string, string> {
  const entries = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'));
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

const beginners = new WeakMap<Map<number, Buffer>, IncomingHttpHeaders>();

function begin(s3: ScriptedS3, { headers }: S3Call): Answer {
  const id = `upload-${s3.calls.length}`;
  const parts = new Map<number, Buffer>();
  beginners.set(parts, headers);
  s3.uploads.set(id, parts);
  const body = `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`;
  return { status: 200, body };
}

function putPart(s3: ScriptedS3, { query, body, headers }: S3Call): Answer {
  const parts = s3.uploads.get(query.get('uploadId') ?? '');
  if (parts === undefined) return failure(404, 'NoSuchUpload');
  const source = headers['x-amz-copy-source'];
  const sourceKey = typeof source === 'string' ? source.slice(source.indexOf('/') + 1) : null;
  const bytes = sourceKey === null ? body : s3.objects.get(sourceKey)?.bytes;
  if (bytes === undefined) return failure(404, 'NoSuchKey');
  parts.set(Number(query.get('partNumber')), bytes);
  if (sourceKey === null) return { status: 200, headers: { etag: etagOf(bytes) } };
  return {
    status: 200,
    body: `<CopyPartResult><ETag>${etagOf(bytes)}</ETag></CopyPartResult>`,
  };
}

function endUpload(s3: ScriptedS3, call: S3Call): Answer {
  const id = call.query.get('uploadId') ?? '';
  const parts = s3.uploads.get(id);
  if (parts === undefined) return failure(404, 'NoSuchUpload');
  if (call.method === 'DELETE') {
    s3.uploads.delete(id);
    return { status: 204 };
  }
  const inOrder = [...parts.entries()].sort(([a], [b]) => a - b).map(([, bytes]) => bytes);
  const answer = create(s3, call, Buffer.concat(inOrder), beginners.get(parts));
  if (answer.status !== 200) return answer;
  s3.uploads.delete(id);
  return { status: 200, body: '<CompleteMultipartUploadResult></CompleteMultipartUploadResult>' };
}

function get(s3: ScriptedS3, { key, headers }: S3Call, ignoresRange: boolean): Answer {
  const object = s3.objects.get(key);
  if (object === undefined) return failure(404, 'NoSuchKey');
  const { bytes } = object;
  const etag = etagOf(bytes);
  const wanted = headers['if-match'];
  if (wanted !== undefined && wanted !== etag) return failure(412, 'PreconditionFailed');
  const shared = { ...object.headers, etag };
  const range = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '');
  if (range === null || ignoresRange) {
    return {
      status: 200,
      headers: { ...shared, 'content-length': String(bytes.length) },
      body: bytes,
    };
  }
  const from = Number(range[1]);
  if (from >= bytes.length) return failure(416, 'InvalidRange');
  const to = Math.min(range[2] === '' ? Infinity : Number(range[2]) + 1, bytes.length);
  return {
    status: 206,
    headers: { ...shared, 'content-range': `bytes ${from}-${to - 1}/${bytes.length}` },
    body: bytes.subarray(from, to),
  };
}

function etagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}
