import type { Readable } from 'node:stream';
import { retryAfterMs } from '../../core/dispatch/retry-after';
import type { StreamedBody } from '../../platform/http-client/outbound-body';
import { sendRequest, type OutboundFailure } from '../../platform/http-client/outbound-request';
import {
  openConnectionPool,
  type ConnectionPool,
  type ConnectionPoolOptions,
} from '../../platform/http-client/pool';
import type { OutboundAnswer } from '../../platform/http-client/streamed-answer';

/** How AWS is reached. */
export interface AwsTransportOptions {
  readonly tls: ConnectionPoolOptions['tls'];
  /** Time limit of a call without a large body, and of a transfer in which no byte moves, ms. */
  readonly requestTimeoutMs: number;
  /** Time limit of an upload or a download, ms. */
  readonly transferTimeoutMs: number;
}

/** One call of a client. It is passed as the options of `client.send`, and notes how the request went. */
export interface AwsExchange {
  readonly signal: AbortSignal;
  /** Replaces the time limit of the options, ms. */
  readonly timeoutMs?: number | undefined;
  readonly mayLeave?: (() => boolean) | undefined;
  /** Whether the call opens a connection of its own, as each create does. */
  readonly usesNewConnection?: boolean;
  /** Bytes of a streamed request body. */
  readonly streamedBytes?: number;
  /** Whether the answer is a file, which the caller reads as a stream. */
  readonly isDownload?: boolean;
  /** The head of the answer; undefined if there was none. */
  answered?: { readonly status: number; readonly retryAfterMs: number | null };
  /** The failure that has ended the request; null while there is none; undefined if nothing was sent. */
  failure?: () => OutboundFailure | null;
}

/** The part of the SDK's request that is used here. */
interface SdkRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | string[] | null>> | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** The part of the SDK's answer that it reads. */
interface SdkResponse {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Readable;
}

/** Sends the signed requests of the clients of AWS's SDK. Use it as their `requestHandler`. */
export interface AwsTransport {
  readonly requestHandler: {
    handle(request: SdkRequest, options?: object): Promise<{ response: SdkResponse }>;
    updateHttpClientConfig(): void;
    httpHandlerConfigs(): Record<string, never>;
    destroy(): void;
  };
  close(): Promise<void>;
}

/** Headers of an answer that clients read. */
const READ_HEADERS: readonly string[] = [
  'content-length',
  'content-type',
  'etag',
  'x-amzn-errortype',
  'x-amzn-requestid',
  'x-amz-request-id',
  'x-amz-bucket-region',
];
const CONNECTIONS = 32;
const MAX_CONTROL_BYTES = 16 * 1024 * 1024;
const MAX_PAUSE_MS = 3_600_000;

/**
 * A transport that sends each request once, by the rules of every call to a provider
 * (docs/design/providers.md#one-attempt). The SDK's own one cannot tell whether a byte of a failed request has
 * left, asks for no permission to send, and reuses connections for creates.
 */
export function openAwsTransport(options: AwsTransportOptions): AwsTransport {
  const pools = new Map<string, ConnectionPool>();
  const openPool = (origin: string, connections: number): ConnectionPool =>
    openConnectionPool(origin, {
      connections,
      timeoutMs: options.requestTimeoutMs,
      tls: options.tls,
      resetsOnAbort: true,
    });
  const sharedPool = (origin: string): ConnectionPool => {
    const pool = pools.get(origin) ?? openPool(origin, CONNECTIONS);
    pools.set(origin, pool);
    return pool;
  };
  return {
    requestHandler: {
      handle: async (request, exchange) => {
        const call = exchange as AwsExchange;
        const origin = originOf(request);
        const isOwn = call.usesNewConnection === true;
        if (!isOwn)
          return { response: await exchanged(sharedPool(origin), request, call, options) };
        const pool = openPool(origin, 1);
        const response = await exchanged(pool, request, call, options).catch(
          async (error: unknown) => {
            await pool.destroy();
            throw error;
          },
        );
        // A pool that is destroyed ends its requests, so the answer is read before.
        response.body.once('close', () => void pool.destroy());
        return { response };
      },
      updateHttpClientConfig: () => undefined,
      httpHandlerConfigs: () => ({}),
      destroy: () => undefined,
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

async function exchanged(
  pool: ConnectionPool,
  request: SdkRequest,
  exchange: AwsExchange,
  options: AwsTransportOptions,
): Promise<SdkResponse> {
  const { signal, timeoutMs, mayLeave, isDownload = false, streamedBytes } = exchange;
  const isTransfer = isDownload || streamedBytes !== undefined;
  const presetMs = isTransfer ? options.transferTimeoutMs : options.requestTimeoutMs;
  const call = sendRequest(pool, {
    method: request.method as 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: pathOf(request),
    headers: headersOf(request),
    body: bodyOf(request, streamedBytes),
    timeoutMs: timeoutMs ?? presetMs,
    idleTimeoutMs: options.requestTimeoutMs,
    maxAnswerBytes: isDownload ? Number.MAX_SAFE_INTEGER : MAX_CONTROL_BYTES,
    mayLeave,
    signal,
  });
  exchange.failure = () => call.failure();
  const answer = await call.answer;
  if (answer.kind === 'failure') throw new Error(answer.message);
  const pauseMs = retryAfterMs(answer.header('retry-after'), Date.now(), MAX_PAUSE_MS);
  exchange.answered = { status: answer.status, retryAfterMs: pauseMs };
  return { statusCode: answer.status, headers: readHeaders(answer), body: answer.body };
}

function originOf({ protocol, hostname, port }: SdkRequest): string {
  return `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`;
}

/** Path and query as they were signed. */
function pathOf({ path, query = {} }: SdkRequest): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value]
      .flat()
      .map((one) => (one === null ? escaped(name) : `${escaped(name)}=${escaped(one)}`)),
  );
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

/** The encoding of signatures: also characters that `encodeURIComponent` leaves as they are. */
function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Headers of the connection, and the length of the body, are stated by the HTTP client. */
function headersOf({ headers }: SdkRequest): readonly string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    ['content-length', 'expect', 'connection'].includes(name.toLowerCase()) ? [] : [name, value],
  );
}

function bodyOf({ body }: SdkRequest, bytes: number | undefined): Buffer | StreamedBody | null {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) {
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  }
  if (body === undefined || body === null) return null;
  return { bytes: bytes ?? null, open: () => body as AsyncIterable<Uint8Array> };
}

function readHeaders(answer: OutboundAnswer): Record<string, string> {
  return Object.fromEntries(
    READ_HEADERS.flatMap((name) => {
      const value = answer.header(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}
