import { HttpAttempt, type AttemptFailure, type ResponseReader } from './attempt';
import type { HeaderFields } from './header-fields';
import { guardBody, type GuardedBody, type StreamedBody } from './outbound-body';
import type { ConnectionPool } from './pool';
import { StallTimer } from './stall-timer';
import { StreamedAnswer, type OutboundAnswer } from './streamed-answer';

/** One request whose body and response may be too large for memory. */
export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** Name, value, name, value, …; without `content-length`. */
  readonly headers: readonly string[];
  readonly body: Buffer | StreamedBody | null;
  /** Time limit from now to the last byte of the response, ms. */
  readonly timeoutMs: number;
  /** Longest time in which no byte moves, counted from the connection, ms. A slow consumer does not count. */
  readonly idleTimeoutMs: number;
  /** Largest response after content decoding. */
  readonly maxAnswerBytes: number;
  /** Asked before the first byte and before each piece of a streamed body. False ends the request. */
  readonly mayLeave?: (() => boolean) | undefined;
  readonly signal: AbortSignal;
}

/** A request without a complete response. */
export interface OutboundFailure extends AttemptFailure {
  readonly kind: 'failure';
  /** Whether the server may have received a byte of the request. */
  readonly mayBeSent: boolean;
}

/** A request that was started. */
export interface OutboundCall {
  /**
   * The head of the response, or the failure before it. Rejects with the error of the request's body if that
   * could not be read.
   */
  readonly answer: Promise<OutboundAnswer | OutboundFailure>;
  /** The failure that has ended the request; null while there is none. It tells why a body broke. */
  failure(): OutboundFailure | null;
}

/**
 * Sends one request, once: it retries nothing and follows no redirect
 * (docs/design/providers.md#one-attempt). Use a pool with `resetsOnAbort`.
 */
export function sendRequest(pool: ConnectionPool, request: OutboundRequest): OutboundCall {
  const exchange = new OutboundExchange(request);
  exchange.start(pool);
  return { answer: exchange.answer, failure: () => exchange.failure };
}

class OutboundExchange implements ResponseReader {
  readonly answer: Promise<OutboundAnswer | OutboundFailure>;
  failure: OutboundFailure | null = null;
  readonly #request: OutboundRequest;
  readonly #attempt: HttpAttempt;
  readonly #received: StreamedAnswer;
  readonly #idle: StallTimer;
  readonly #guarded: GuardedBody | null;
  readonly #onAbort = (): void => this.#attempt.abort();
  #resolve: (end: OutboundAnswer | OutboundFailure) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(request: OutboundRequest) {
    this.#request = request;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { timeoutMs, idleTimeoutMs, body } = request;
    this.#attempt = new HttpAttempt({ timeoutMs, reader: this });
    this.#received = new StreamedAnswer(this.#attempt, request.maxAnswerBytes);
    this.#idle = new StallTimer(idleTimeoutMs, () => this.#onIdle());
    this.#guarded = body === null || Buffer.isBuffer(body) ? null : this.#guard(body);
  }

  start(pool: ConnectionPool): void {
    const { method, path, headers, body, signal } = this.#request;
    signal.addEventListener('abort', this.#onAbort, { once: true });
    if (signal.aborted) return this.#attempt.abort();
    const bytes = body === null || Buffer.isBuffer(body) ? null : body.bytes;
    const length = bytes === null ? [] : ['content-length', String(bytes)];
    const sent = Buffer.isBuffer(body) ? body : (this.#guarded?.pieces ?? null);
    const options = { method, path, headers: [...headers, ...length], body: asBody(sent) };
    pool.dispatch(options, this.#attempt);
  }

  maySend(): boolean {
    if (this.#request.mayLeave?.() === false) return false;
    this.#idle.start();
    return true;
  }

  onHead(status: number, fields: HeaderFields): void {
    this.#idle.progress();
    const answer = this.#received.start(status, fields);
    if (!this.#attempt.isOver) this.#resolve(answer);
  }

  onBytes(chunk: Buffer): void {
    this.#idle.progress();
    this.#received.write(chunk);
  }

  onEnd(): void {
    this.#end();
    this.#received.end();
  }

  onFailure(failure: AttemptFailure): void {
    this.#end();
    this.failure = { kind: 'failure', ...failure, mayBeSent: this.#mayBeSent() };
    // Has no effect if the head has arrived.
    this.#resolve(this.failure);
    this.#received.body.destroy(new Error(failure.message));
  }

  #mayBeSent(): boolean {
    return this.#attempt.hasLeft && this.#guarded?.hasLeft() !== false;
  }

  #onIdle(): void {
    if (this.#received.isHeld) return this.#idle.start();
    const message = `no byte moved for ${this.#request.idleTimeoutMs} ms`;
    this.#attempt.fail('timeout', message);
  }

  #guard(body: StreamedBody): GuardedBody {
    return guardBody(body, {
      isOver: () => this.#attempt.isOver,
      mayLeave: () => this.#request.mayLeave?.() !== false,
      onStopped: () => this.#onStopped(),
      onPiece: () => this.#idle.progress(),
      onSourceFailed: (error) => {
        this.#reject(error);
        this.#attempt.fail('aborted', 'the body of the request could not be read');
      },
    });
  }

  #onStopped(): void {
    const reason = this.#mayBeSent() ? 'aborted' : 'unsent';
    this.#attempt.fail(reason, 'the request was no longer allowed to be sent');
  }

  #end(): void {
    this.#idle.stop();
    this.#request.signal.removeEventListener('abort', this.#onAbort);
  }
}

/** undici accepts any async iterable, but declares only streams. */
function asBody(body: Buffer | AsyncIterable<Uint8Array> | null): Buffer | null {
  return body as Buffer | null;
}
