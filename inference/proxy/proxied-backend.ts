import { Readable } from 'node:stream';
import { joinPath, withoutTrailingSlashes } from '../../platform/http-client/base-url';
import type { HttpAttempt } from '../../platform/http-client/attempt';
import {
  openConnectionPool,
  type ConnectionPool,
  type ConnectionPoolOptions,
} from '../../platform/http-client/pool';
import { requestHeaders, type RawHeaders } from './forwarded-headers';

/** How one backend is reached. */
export interface ProxiedBackendOptions {
  /** Base URL; its path precedes the path of a request, without repeating `/v1`. */
  readonly url: string;
  /** Value of `authorization` for this backend, or null. */
  readonly authorization: string | null;
  readonly tls: ConnectionPoolOptions['tls'];
  /** Connections at most. More requests would wait for one unseen, so admission must allow fewer. */
  readonly connections: number;
  /** Time limit of a connection, ms; 10 s at most. */
  readonly connectTimeoutMs: number;
}

/** A body that is not in memory. It is read again for each backend that gets it. */
export interface BodySource {
  /** Bytes. */
  readonly size: number;
  read(): AsyncIterable<Buffer>;
}

/** A request as a client sent it. */
export interface ProxiedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** `rawHeaders` of the client's request. */
  readonly headers: RawHeaders;
  /** Fields that the gateway sets; they replace the client's fields of the same name. */
  readonly ownHeaders: RawHeaders;
  /** Whether a backend without a key of its own gets the client's `authorization`. */
  readonly keepsAuthorization: boolean;
  /** Names of further fields of the client that the backend does not get, in lower case. */
  readonly withheld?: readonly string[];
  /** Exactly the bytes to send; null for none. */
  readonly body: Buffer | BodySource | null;
}

/** The connections to one backend of the gateway. */
export interface ProxiedBackend {
  /** Base URL, as configured. */
  readonly url: string;
  /** Sends the request as `attempt`. */
  dispatch(request: ProxiedRequest, attempt: HttpAttempt): void;
  /** Closes all connections. Exchanges that still run end as lost, so the caller drains first. */
  close(): Promise<void>;
}

const NONE: readonly string[] = [];

/** Opens no connection before the first request. */
export function openProxiedBackend(options: ProxiedBackendOptions): ProxiedBackend {
  const base = new URL(options.url);
  const { connections, connectTimeoutMs: timeoutMs, tls, authorization } = options;
  const pool: ConnectionPool = openConnectionPool(base.origin, { connections, timeoutMs, tls });
  const basePath = withoutTrailingSlashes(base.pathname);
  const key = authorization === null ? [] : ['authorization', authorization];
  return {
    url: options.url,
    dispatch: (request, attempt) => {
      const { method, body, ownHeaders, keepsAuthorization, withheld = NONE } = request;
      const path = joinPath(basePath, request.path);
      const isStored = body !== null && !Buffer.isBuffer(body);
      const length = isStored ? ['content-length', String(body.size)] : NONE;
      const own = [...ownHeaders, ...key, ...length];
      const received = request.headers;
      const headers = requestHeaders({ received, own, keepsAuthorization, withheld });
      // The client destroys the stream at the end of the attempt, whatever it is, and so ends the reading.
      const sent = isStored ? Readable.from(body.read(), { objectMode: false }) : body;
      pool.dispatch({ method, path, headers, body: sent }, attempt);
    },
    close: () => pool.destroy(),
  };
}
