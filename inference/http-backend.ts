import { Pool } from 'undici';
import { NightshiftError } from '../core/errors';
import { withoutTrailingSlashes } from '../core/url-path';
import { redactUrl } from '../platform/config-redact';
import type { GatewayConfig } from '../platform/config-schema';
import { AbortFanOut } from './abort-fan-out';
import type { Backend, BackendOutcome, BackendRequest } from './backend';
import { HttpExchange } from './http-exchange';
import { createHeaderBuilder } from './request-headers';
import type { GatewaySecrets } from './secrets';

/** At most this long for TCP and TLS; a shorter `request_timeout` counts instead. */
const CONNECT_TIMEOUT_MS = 10_000;
/** The longest delay that Node's timers know; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Idle connections end below the 5 s after which uvicorn and Node close theirs. */
const KEEP_ALIVE_MS = 4_000;

/** What the gateway's own settings do not say. */
export interface HttpBackendOptions {
  readonly secrets: GatewaySecrets;
  /** Requests that can run at once; more wait for a connection. */
  readonly connections: number;
  /** `limits.max_answer_bytes`, after content decoding. */
  readonly maxAnswerBytes: number;
  /** Unix ms; given by tests. */
  readonly now?: () => number;
}

/**
 * The way to one gateway over HTTP/1.1 keep-alive connections (undici `dispatch`, measured in the
 * transport table of the benchmarks as the fastest maintained client). `request_timeout` counts from
 * `send` to the last byte of the answer. Nothing is retried here, redirects are answers, gzip,
 * deflate and br are undone. A base URL may carry a path and a trailing slash; where it ends in `/v1`,
 * as many are written, the `/v1` of the endpoint is not doubled.
 * @throws config_invalid for a `request_timeout` of 0.
 */
export function createHttpBackend(gateway: GatewayConfig, options: HttpBackendOptions): Backend {
  const timeoutMs = Math.min(gateway.request_timeout, MAX_TIMER_MS);
  if (!(timeoutMs >= 1)) {
    throw new NightshiftError(
      'config_invalid',
      `gateway ${redactUrl(gateway.url)}: request_timeout must not be 0`,
    );
  }
  const base = new URL(gateway.url);
  const basePath = withoutTrailingSlashes(base.pathname);
  const pool = openPool(base.origin, gateway, options);
  const headersOf = createHeaderBuilder({
    authorization: options.secrets.authorization,
    objective: gateway.inference_objective,
  });
  const now = options.now ?? Date.now;
  const aborts = new AbortFanOut();
  let running = 0;
  let closing: Promise<void> | null = null;
  let onIdle: (() => void) | null = null;

  const start = (
    request: BackendRequest,
    signal: AbortSignal,
    resolve: (outcome: BackendOutcome) => void,
  ): void => {
    running++;
    const exchange = new HttpExchange({
      request,
      maxAnswerBytes: options.maxAnswerBytes,
      timeoutMs,
      onSettled: (outcome) => {
        unsubscribe();
        resolve(outcome);
        if (--running === 0) onIdle?.();
      },
    });
    const unsubscribe = aborts.add(signal, () => exchange.abort());
    const headers = headersOf(request, now());
    const path = joinPath(basePath, request.path);
    pool.dispatch({ path, method: 'POST', headers, body: asBuffer(request.body) }, exchange);
  };
  const idle = (): Promise<void> =>
    running === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          onIdle = resolve;
        });

  return {
    send: (request, signal) =>
      signal.aborted || closing !== null
        ? Promise.resolve(NOT_SENT)
        : new Promise((resolve) => start(request, signal, resolve)),
    close: () => (closing ??= idle().then(() => pool.destroy())),
  };
}

const NOT_SENT: BackendOutcome = {
  kind: 'failure',
  reason: 'aborted',
  message: 'the request was aborted before it was sent',
};

function joinPath(basePath: string, path: string): string {
  const isDoubled = basePath.endsWith('/v1') && path.startsWith('/v1/');
  return (isDoubled ? basePath.slice(0, -'/v1'.length) : basePath) + path;
}

function openPool(origin: string, gateway: GatewayConfig, options: HttpBackendOptions): Pool {
  return new Pool(origin, {
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The exchange counts the total time; undici's own limits would only add timers.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: Math.min(CONNECT_TIMEOUT_MS, gateway.request_timeout),
      ...options.secrets.tls,
    },
  });
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
