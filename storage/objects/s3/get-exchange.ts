import {
  HttpAttempt,
  type AttemptFailure,
  type ResponseReader,
} from '../../../platform/http-client/attempt';
import type { HeaderFields } from '../../../platform/http-client/header-fields';
import type { RequestPool } from '../../../platform/http-client/pool';
import { LentBody } from './lent-body';
import { fieldsOf, headersOf, targetOf, type SdkAnswer, type SdkRequest } from './sdk-messages';
import type { SpareBuffers } from '../spare-buffers';

export interface GetExchangeOptions {
  readonly request: SdkRequest;
  /** Longest time until the head of the answer, ms. */
  readonly timeoutMs: number;
  /** Longest pause in its body, ms. */
  readonly pauseMs: number;
  readonly signal: AbortSignal | undefined;
  readonly buffers: SpareBuffers;
  /** Called with the head of the answer. */
  readonly onAnswer: (answer: SdkAnswer) => void;
  /** Called instead, with what the SDK takes for an error of Node's HTTP client. */
  readonly onFailure: (error: Error) => void;
  /** Called once, when nothing more arrives. */
  readonly onOver: (exchange: GetExchange) => void;
}

const NO_BODY = Buffer.alloc(0);
const NONE_IN_COMMON: readonly string[] = [];

/** One GET request and its answer. */
export class GetExchange implements ResponseReader {
  readonly copiesBytes = true;
  readonly #o: GetExchangeOptions;
  readonly #attempt: HttpAttempt;
  readonly #onAbort = (): void => this.abort();
  #body: LentBody | null = null;

  constructor(options: GetExchangeOptions) {
    this.#o = options;
    this.#attempt = new HttpAttempt({ timeoutMs: options.timeoutMs, reader: this });
  }

  start(pool: RequestPool): void {
    const { request, signal } = this.#o;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (signal?.aborted === true) return this.abort();
    const { method } = request;
    const head = { method, path: targetOf(request), headers: fieldsOf(request) };
    pool.dispatch({ ...head, common: NONE_IN_COMMON, body: NO_BODY }, this.#attempt);
  }

  /** Ends it, also in the middle of the body. */
  abort(): void {
    this.#attempt.abort();
  }

  onHead(statusCode: number, fields: HeaderFields): void {
    this.#attempt.liftTimer();
    const headers = headersOf(fields);
    const length = headers['content-length'];
    const bytes = length === undefined ? null : Number(length);
    const { buffers, pauseMs } = this.#o;
    this.#body = new LentBody({ attempt: this.#attempt, buffers, bytes, timeoutMs: pauseMs });
    this.#o.onAnswer({ statusCode, headers, body: this.#body });
  }

  onBytes(piece: Buffer): void {
    this.#body?.add(piece);
  }

  onEnd(): void {
    this.#attempt.finish();
    this.#end();
    this.#body?.finish();
  }

  onFailure(failure: AttemptFailure): void {
    this.#end();
    const error = asNodeError(failure);
    if (this.#body === null) this.#o.onFailure(error);
    else this.#body.fail(error);
  }

  #end(): void {
    this.#o.signal?.removeEventListener('abort', this.#onAbort);
    this.#o.onOver(this);
  }
}

/** With the name or the code by which the SDK knows which requests may be sent again. */
function asNodeError({ reason, message, code }: AttemptFailure): Error {
  const error = new Error(message);
  if (reason === 'aborted') return Object.assign(error, { name: 'AbortError' });
  if (reason === 'connection') return Object.assign(error, { code: code ?? 'ECONNRESET' });
  return Object.assign(error, code === undefined ? { name: 'TimeoutError' } : { code });
}
