import { retryAfterMs } from '../core/dispatch/retry-after';
import { joinPath, withoutTrailingSlashes } from '../platform/http-client/base-url';
import type { StreamedBody } from '../platform/http-client/outbound-body';
import {
  sendRequest,
  type OutboundCall,
  type OutboundFailure,
  type OutboundRequest,
} from '../platform/http-client/outbound-request';
import {
  openConnectionPool,
  type ConnectionPool,
  type ConnectionPoolOptions,
} from '../platform/http-client/pool';
import type { OutboundAnswer } from '../platform/http-client/streamed-answer';

/** How a provider is reached. */
export interface ProviderHttpOptions {
  /** Base URL; its path precedes the path of each call. */
  readonly url: string;
  readonly tls: ConnectionPoolOptions['tls'];
  /** Headers with the credential, built anew for each call: name, value, name, value, …. */
  readonly authorize: () => readonly string[];
  /** Time limit of a call without a large body, and of a transfer in which no byte moves, ms. */
  readonly requestTimeoutMs: number;
  /** Time limit of an upload or a download, ms. */
  readonly transferTimeoutMs: number;
}

/** One call. */
export interface ProviderCall {
  readonly method: OutboundRequest['method'];
  /** Below the base URL, with query. */
  readonly path: string;
  readonly headers?: readonly string[];
  /** A JSON value, sent as it is when the call begins. */
  readonly json?: unknown;
  /** A large body, instead of `json`. Its `content-type` is in `headers`. */
  readonly body?: StreamedBody;
  /** Replaces the time limit of the options, ms. */
  readonly timeoutMs?: number;
  readonly mayLeave?: () => boolean;
  /**
   * Whether the call opens a connection of its own. The server may close an idle connection in the moment in
   * which a request leaves on it. Then it is unknown whether the request arrived.
   */
  readonly usesNewConnection?: boolean;
  readonly signal: AbortSignal;
}

/** A complete answer. */
export interface ProviderAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** The parsed body; undefined if it is not JSON, or the body was passed to the caller of `download`. */
  readonly json: unknown;
  /** A body that is not JSON; empty if there was none, or it was passed on. */
  readonly text?: string;
  /** The pause that the answer asks for, ms, at most an hour; null if it asks for none. */
  readonly retryAfterMs: number | null;
  /** The value of a header, whose name is in lower case; null without it. Absent for answers that an SDK has read. */
  header?(name: string): string | null;
}

/** The end of a call. */
export type ProviderEnd = ProviderAnswer | OutboundFailure;

/**
 * Calls to the JSON API of one provider. Each call is one request: nothing is retried, and a redirect is an
 * answer, because credentials go to the configured origin only (docs/design/providers.md#one-attempt).
 */
export interface ProviderHttp {
  /** Rejects only with the error of a body that cannot be read. */
  send(call: ProviderCall): Promise<ProviderEnd>;
  /**
   * Passes the body of a 2xx answer on, piece by piece, with back-pressure. Rejects with the error of
   * `take`. A failure may come after some pieces were passed on.
   */
  download(call: ProviderCall, take: (piece: Buffer) => Promise<void>): Promise<ProviderEnd>;
  close(): Promise<void>;
}

/** Every answer that is not a file. */
const MAX_CONTROL_BYTES = 16 * 1024 * 1024;
/** Of an error body. What follows is not read. */
const MAX_ERROR_BYTES = 64 * 1024;
const MAX_FILE_BYTES = Number.MAX_SAFE_INTEGER;
const MAX_PAUSE_MS = 3_600_000;
const CONNECTIONS = 32;

/** Opens no connection before the first call. */
export function openProviderHttp(options: ProviderHttpOptions): ProviderHttp {
  const { url, tls, requestTimeoutMs, transferTimeoutMs, authorize } = options;
  const base = new URL(url);
  const basePath = withoutTrailingSlashes(base.pathname);
  const openPool = (connections: number): ConnectionPool =>
    openConnectionPool(base.origin, {
      connections,
      timeoutMs: requestTimeoutMs,
      tls,
      resetsOnAbort: true,
    });
  const shared = openPool(CONNECTIONS);
  const begin = (call: ProviderCall, isTransfer: boolean, pool = shared): OutboundCall => {
    const { method, path, headers = [], json, body, mayLeave, signal } = call;
    const isJson = json !== undefined;
    const type = isJson ? ['content-type', 'application/json'] : [];
    return sendRequest(pool, {
      method,
      path: joinPath(basePath, path),
      headers: ['accept', 'application/json', ...type, ...headers, ...authorize()],
      body: isJson ? Buffer.from(JSON.stringify(json)) : (body ?? null),
      timeoutMs: call.timeoutMs ?? (isTransfer ? transferTimeoutMs : requestTimeoutMs),
      idleTimeoutMs: requestTimeoutMs,
      maxAnswerBytes: isTransfer && body === undefined ? MAX_FILE_BYTES : MAX_CONTROL_BYTES,
      mayLeave,
      signal,
    });
  };
  return {
    send: async (call) => {
      const pool = call.usesNewConnection === true ? openPool(1) : shared;
      try {
        return await complete(begin(call, call.body !== undefined, pool), readJson);
      } finally {
        if (pool !== shared) await pool.destroy();
      }
    },
    download: async (call, take) => {
      let fault: { readonly error: unknown } | null = null;
      const keepFault = (error: unknown): never => {
        fault = { error };
        throw error;
      };
      const read = async (answer: OutboundAnswer): Promise<ReadBody> => {
        if (!isSuccess(answer)) return readJson(answer);
        for await (const piece of answer.body as AsyncIterable<Buffer>) {
          await take(piece).catch(keepFault);
        }
        return {};
      };
      const end = await complete(begin(call, true), read);
      // The error of `take` has also ended the request, as `aborted`.
      if (fault !== null) throw (fault as { readonly error: unknown }).error;
      return end;
    },
    close: () => shared.destroy(),
  };
}

/** A body: JSON, or a text that is none. */
interface ReadBody {
  readonly json?: unknown;
  readonly text?: string;
}

/** Waits for the head, then reads the body. */
async function complete(
  call: OutboundCall,
  read: (answer: OutboundAnswer) => Promise<ReadBody>,
): Promise<ProviderEnd> {
  const answer = await call.answer;
  if (answer.kind === 'failure') return answer;
  try {
    const { json, text = '' } = await read(answer);
    const pauseMs = retryAfterMs(answer.header('retry-after'), Date.now(), MAX_PAUSE_MS);
    const { status } = answer;
    const header = (name: string): string | null => answer.header(name);
    return { kind: 'answer', status, json, text, retryAfterMs: pauseMs, header };
  } catch (error) {
    const failure = call.failure();
    if (failure === null) throw error;
    return failure;
  }
}

async function readJson(answer: OutboundAnswer): Promise<ReadBody> {
  const maxBytes = isSuccess(answer) ? Infinity : MAX_ERROR_BYTES;
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer.body as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxBytes) return {};
  }
  const text = Buffer.concat(pieces).toString('utf8');
  const json = parsed(text);
  return json === undefined ? { text } : { json };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isSuccess({ status }: { readonly status: number }): boolean {
  return status >= 200 && status < 300;
}
