import type { ConnectionOptions } from 'node:tls';
import { Pool } from 'undici';
import { MAX_ANSWER_HEADER_BYTES, type HttpAttempt } from './attempt';
import { Http1Pool } from './http1/connection-pool';
import type { Http1Request } from './http1/write-request';
import { resettingConnector } from './resetting-connector';

/** Time limit for TCP and TLS together, unless the total time is shorter. */
const CONNECT_TIMEOUT_MS = 10_000;
/** uvicorn and Node close idle connections after 5 s. We close ours first, so no request is cut off. */
const KEEP_ALIVE_MS = 4_000;

/** What a pool of connections to one origin needs. */
export interface ConnectionPoolOptions {
  /** Requests that can run at once; more wait for a connection. */
  readonly connections: number;
  /** Total time of one request, ms; it also limits the time to connect. */
  readonly timeoutMs: number;
  readonly tls: Pick<ConnectionOptions, 'rejectUnauthorized' | 'ca' | 'cert' | 'key'>;
  /** Whether the connection of an aborted request is reset, so that nothing of it is sent later. Default false. */
  readonly resetsOnAbort?: boolean;
}

/** Connections of a client to one origin. */
export type ConnectionPool = Pick<Pool, 'dispatch' | 'destroy'>;

/** Connections for requests whose body is in memory. */
export interface RequestPool {
  /** Sends a request as `attempt`, which may end before this returns. */
  dispatch(request: Http1Request, attempt: HttpAttempt): void;
  /** Opens connections until `count` are free, because as many requests will follow soon. */
  prepare(count: number): void;
  destroy(): Promise<void>;
}

/**
 * HTTP/1.1 keep-alive connections to one origin for many short requests
 * ([decision 38](docs/decisions/0038-requests-go-out-through-a-client-of-our-own.md)). Like the other pool, it never
 * retries and follows no redirect.
 */
export function openRequestPool(
  origin: string,
  { connections, tls, timeoutMs }: Omit<ConnectionPoolOptions, 'resetsOnAbort'>,
): RequestPool {
  const target = {
    url: new URL(origin),
    connectTimeoutMs: connectTimeout(timeoutMs),
    tls,
    session: { latest: null },
  };
  return new Http1Pool({ target, connections, keepAliveMs: KEEP_ALIVE_MS });
}

/**
 * HTTP/1.1 keep-alive connections to one origin, for bodies of any kind. Requests go out through undici's `dispatch`, the
 * fastest way of all maintained clients (docs/benchmarks.md). It never retries and follows no redirect.
 */
export function openConnectionPool(origin: string, options: ConnectionPoolOptions): ConnectionPool {
  const { tls } = options;
  const timeout = connectTimeout(options.timeoutMs);
  return new Pool(origin, {
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
    // The attempt bounds the total time; undici's own limits would only add timers.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect:
      options.resetsOnAbort === true ? resettingConnector(timeout, tls) : { timeout, ...tls },
  });
}

function connectTimeout(timeoutMs: number): number {
  return Math.min(CONNECT_TIMEOUT_MS, timeoutMs);
}
