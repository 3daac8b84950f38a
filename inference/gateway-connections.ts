import type { HttpAttempt } from '../platform/http-client/attempt';
import { joinPath, withoutTrailingSlashes } from '../platform/http-client/base-url';
import { guardBody } from '../platform/http-client/outbound-body';
import {
  openConnectionPool,
  openRequestPool,
  type ConnectionPool,
  type RequestPool,
} from '../platform/http-client/pool';
import type { GatewayConfig } from '../platform/config-schema';
import type { BackendRequest, RequestForm } from './backend';
import { createHeaderBuilder, type HeaderBuilder } from './request-headers';
import type { GatewaySecrets } from './secrets';

/** Settings of the connections that are not in the gateway's configuration. */
export interface GatewayConnectionsOptions {
  readonly secrets: GatewaySecrets;
  /** Requests that can run at once; more wait for a connection. */
  readonly connections: number;
  /** Total time of one request, ms. */
  readonly timeoutMs: number;
  /** Unix ms; given by tests. */
  readonly now?: () => number;
}

/**
 * The connections to one gateway, and the requests in flight on them. It builds and sends requests; the
 * reader of the attempt handles the answer.
 */
export class GatewayConnections {
  /** For bodies in memory; null if undici sends these, too. */
  readonly #pool: RequestPool | null;
  readonly #openFormPool: () => ConnectionPool;
  /** Made when it is needed: only audio has forms, and few gateways use undici. */
  #formPool: ConnectionPool | null = null;
  readonly #basePath: string;
  readonly #headersOf: HeaderBuilder;
  readonly #now: () => number;
  #inFlight = 0;
  #onIdle: (() => void) | null = null;
  #closing: Promise<void> | null = null;

  constructor(gateway: GatewayConfig, options: GatewayConnectionsOptions) {
    const base = new URL(gateway.url);
    const { connections, timeoutMs, secrets } = options;
    this.#basePath = withoutTrailingSlashes(base.pathname);
    const pool = { connections, timeoutMs, tls: secrets.tls };
    this.#openFormPool = () => openConnectionPool(base.origin, pool);
    const isUndici = gateway.http_client === 'undici';
    this.#pool = isUndici ? null : openRequestPool(base.origin, pool);
    this.#headersOf = createHeaderBuilder({
      authorization: secrets.authorization,
      objective: gateway.inference_objective,
    });
    this.#now = options.now ?? Date.now;
  }

  get isClosing(): boolean {
    return this.#closing !== null;
  }

  /** Sends the request as `attempt`, which may end before this returns. {@link onEnded} must follow each call. */
  dispatch(request: BackendRequest, attempt: HttpAttempt): void {
    this.#inFlight++;
    const { own, common } = this.#headersOf(request, this.#now());
    const { body } = request;
    const path = joinPath(this.#basePath, request.path);
    const method = 'POST';
    if (body instanceof Uint8Array && this.#pool !== null) {
      const bytes = asBuffer(body);
      // Member by member: an object spread here took 4 % of a worker's time with Node 20.
      return this.#pool.dispatch({ path, method, headers: own, common, body: bytes }, attempt);
    }
    const content = body instanceof Uint8Array ? body : piecesOf(body, request, attempt);
    const headers = own.concat(common);
    this.#formsPool().dispatch({ path, method, headers, body: content }, attempt);
  }

  /** Opens connections for requests with bodies in memory; undici opens its own when there are requests. */
  prepare(count: number): void {
    if (!this.isClosing) this.#pool?.prepare(count);
  }

  /** An attempt has ended. */
  onEnded(): void {
    if (--this.#inFlight === 0) this.#onIdle?.();
  }

  /** Waits for requests in flight, then closes all connections. */
  close(): Promise<void> {
    return (this.#closing ??= this.#idle().then(() => this.#destroy()));
  }

  async #destroy(): Promise<void> {
    await this.#pool?.destroy();
    await this.#formPool?.destroy();
  }

  #formsPool(): ConnectionPool {
    return (this.#formPool ??= this.#openFormPool());
  }

  #idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }
}

/** The form piece by piece, as fast as the connection takes it. */
function piecesOf(
  form: RequestForm,
  request: Pick<BackendRequest, 'maySend'>,
  attempt: HttpAttempt,
): Buffer {
  const { pieces } = guardBody(form, {
    isOver: () => attempt.isOver,
    mayLeave: () => request.maySend?.() !== false,
    onStopped: () => attempt.fail('unsent', 'the form was no longer allowed to be sent'),
    onPiece: () => undefined,
    onSourceFailed: () => attempt.fail('unsent', 'the form could not be read'),
  });
  // undici accepts any async iterable, but declares only streams.
  return pieces as unknown as Buffer;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
