import type { S3Client } from '@aws-sdk/client-s3';
import { openRequestPool, type RequestPool } from '../../../platform/http-client/pool';
import { GetExchange } from './get-exchange';
import { BODY_BUFFER_BYTES } from './lent-body';
import type { RequestLimits } from './request-limits';
import { originOf, type SdkAnswer, type SdkRequest } from './sdk-messages';
import { SpareBuffers } from '../spare-buffers';

/** 4 MiB in all: a process fetches 16 objects at once, with two buffers each. */
const MOST_SPARE = 16;

export interface GetRequestsOptions {
  /** Connections to one host. */
  readonly connections: number;
  readonly connectTimeoutMs: number;
  /** Longest time until the head of an answer, and longest pause in its body, ms. */
  readonly requestTimeoutMs: number;
}

/**
 * Makes a client send its GET requests through the HTTP client of Nightshift, so that bodies can be read as
 * {@link LentBody}. The SDK signs them, and sends them again if they fail
 * ([decision 45](docs/decisions/0045-objects-are-read-through-a-client-of-our-own.md)). To be called before `honorLimits`.
 */
export function sendGetsOurselves(client: S3Client, options: GetRequestsOptions): void {
  const gets = new GetRequests(options);
  const handler = client.config.requestHandler as unknown as RequestHandler;
  const handle = handler.handle.bind(handler);
  const destroy = handler.destroy.bind(handler);
  handler.handle = async (request, limits) =>
    request.method === 'GET'
      ? { response: await gets.send(request, limits) }
      : handle(request, limits);
  handler.destroy = () => {
    gets.destroy();
    destroy();
  };
}

/** The part of the SDK's HTTP handler that is used here. */
interface RequestHandler {
  handle(request: SdkRequest, limits?: RequestLimits): Promise<{ readonly response: SdkAnswer }>;
  destroy(): void;
}

class GetRequests {
  readonly #o: GetRequestsOptions;
  /** By origin. */
  readonly #pools = new Map<string, RequestPool>();
  readonly #buffers = new SpareBuffers(BODY_BUFFER_BYTES, MOST_SPARE);
  readonly #running = new Set<GetExchange>();

  constructor(options: GetRequestsOptions) {
    this.#o = options;
  }

  send(request: SdkRequest, limits?: RequestLimits): Promise<SdkAnswer> {
    const { requestTimeoutMs: pauseMs } = this.#o;
    return new Promise((onAnswer, onFailure) => {
      const exchange = new GetExchange({
        request,
        timeoutMs: limits?.requestTimeout ?? pauseMs,
        pauseMs,
        signal: limits?.abortSignal,
        buffers: this.#buffers,
        onAnswer,
        onFailure,
        onOver: (over) => this.#running.delete(over),
      });
      this.#running.add(exchange);
      exchange.start(this.#poolFor(originOf(request)));
    });
  }

  destroy(): void {
    for (const exchange of [...this.#running]) exchange.abort();
    for (const pool of this.#pools.values()) void pool.destroy();
  }

  #poolFor(origin: string): RequestPool {
    const known = this.#pools.get(origin);
    if (known !== undefined) return known;
    const { connections, connectTimeoutMs: timeoutMs } = this.#o;
    const pool = openRequestPool(origin, { connections, timeoutMs, tls: {} });
    this.#pools.set(origin, pool);
    return pool;
  }
}
