import {
  HttpAttempt,
  type AttemptFailure,
  type AttemptFailureReason,
  type ResponseReader,
} from '../../platform/http-client/attempt';
import type { HeaderFields } from '../../platform/http-client/header-fields';
import { decodedPairs } from '../../platform/http-client/raw-headers';
import { StallTimer } from '../../platform/http-client/stall-timer';
import { createAnswerMeter, type AnswerMeter } from './answer-meter';
import { ClientAnswer, type ClientEvents } from './client-answer';
import type { ExchangeEnd, ExchangeOutcome } from './exchange-end';
import { answerHeaders } from './forwarded-headers';
import type { PassThroughOptions } from './pass-through-options';

/** A declined answer is read to its end, so that its connection can be used again, unless it is longer. */
const MAX_DECLINED_BYTES = 64 * 1024;

/** Who began an exchange. */
export interface ExchangeOwner {
  /** Called exactly once, at the end. */
  onSettled(end: ExchangeEnd): void;
}

/**
 * One exchange with a backend whose answer is written to the client as it arrives. Every piece that is read is
 * written at once. While the client's socket is full, nothing more is read from the backend, so an exchange holds
 * little more than one read and one socket buffer.
 */
export class StreamExchange implements ResponseReader, ClientEvents {
  readonly #options: PassThroughOptions;
  readonly #owner: ExchangeOwner;
  readonly #attempt: HttpAttempt;
  readonly #client: ClientAnswer;
  readonly #stall: StallTimer;
  readonly #startedMs = performance.now();
  #onAbort: (() => void) | null = null;
  #status: number | null = null;
  #meter: AnswerMeter | null = null;
  #bytes = 0;
  #ttfbMs: number | null = null;
  #isDeclined = false;
  #isRefused = false;
  #isHeld = false;

  constructor(options: PassThroughOptions, owner: ExchangeOwner) {
    this.#options = options;
    this.#owner = owner;
    const { requestTimeoutMs: timeoutMs, stallTimeoutMs, response } = options;
    this.#attempt = new HttpAttempt({ timeoutMs, reader: this });
    this.#stall = new StallTimer(stallTimeoutMs, () => this.#onStall());
    this.#client = new ClientAnswer(response, this);
  }

  /** Sends the request. Call it once. */
  start(): void {
    const { signal, backend } = this.#options;
    if (signal) {
      this.#onAbort = () => this.#attempt.abort();
      signal.addEventListener('abort', this.#onAbort, { once: true });
    }
    if (signal?.aborted || this.#client.isClosed) this.#attempt.abort();
    else backend.dispatch(this.#options, this.#attempt);
  }

  onHead(status: number, fields: HeaderFields): void {
    this.#status = status;
    const received = answerHeaders(fields.pairs());
    const options = this.#options;
    const headers = options.onHead === undefined ? received : options.onHead(status, received);
    this.#stall.start();
    if (headers === null) this.#isDeclined = true;
    else if (this.#client.isClosed) this.#attempt.abort();
    else {
      this.#client.head(status, headers);
      this.#meter = createAnswerMeter(headers);
    }
  }

  onBytes(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#stall.progress();
    if (this.#ttfbMs === null) this.#onFirstByte();
    if (this.#isDeclined) {
      if (this.#bytes > MAX_DECLINED_BYTES) this.#attempt.fail('too_large', 'a long answer');
    } else if (this.#client.isClosed) this.#attempt.abort();
    else {
      this.#meter?.add(chunk);
      if (!this.#client.write(chunk)) this.#hold();
    }
  }

  onEnd(rawTrailers: readonly Buffer[]): void {
    this.#attempt.finish();
    this.#ttfbMs ??= performance.now() - this.#startedMs;
    if (this.#isDeclined) this.#settle('declined', null);
    else {
      // The timer runs on: a client that does not take the last bytes must not keep its connection.
      this.#client.end(answerHeaders(decodedPairs(rawTrailers)));
      this.#settle('answered', null);
    }
  }

  onFailure({ reason, message, code }: AttemptFailure): void {
    this.#isRefused = reason === 'connect' && code === 'ECONNREFUSED';
    const outcome = this.#isDeclined ? 'declined' : this.#outcomeOf(reason);
    this.#stall.stop();
    if (this.#client.isHeadSent) this.#client.cut();
    this.#settle(outcome, message);
  }

  #outcomeOf(reason: AttemptFailureReason): ExchangeOutcome {
    if (reason === 'connect' || reason === 'unsent') return 'unreachable';
    if (reason === 'timeout') return 'timeout';
    if (reason !== 'aborted') return 'lost';
    return this.#client.isClosed ? 'client_closed' : 'aborted';
  }

  #settle(outcome: ExchangeOutcome, message: string | null): void {
    if (this.#onAbort !== null) this.#options.signal?.removeEventListener('abort', this.#onAbort);
    if (!this.#client.isHeadSent) {
      this.#stall.stop();
      this.#client.detach();
    }
    const read = outcome === 'answered' ? this.#meter?.end() : undefined;
    this.#owner.onSettled({
      outcome,
      status: this.#status,
      isHeadSent: this.#client.isHeadSent,
      isRefused: this.#isRefused,
      bytes: this.#bytes,
      ttfbMs: this.#ttfbMs,
      usage: read?.usage ?? null,
      events: read?.events ?? this.#meter?.events() ?? 0,
      message,
    });
  }

  #onFirstByte(): void {
    this.#ttfbMs = performance.now() - this.#startedMs;
    this.#options.onFirstByte?.(this.#ttfbMs);
  }

  /** Stops reading from the backend until the client has taken what was written. */
  #hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#attempt.hold();
  }

  onDrain(): void {
    this.#stall.progress();
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#attempt.release();
  }

  onClose(): void {
    this.#stall.stop();
    this.#attempt.abort();
  }

  #onStall(): void {
    const side = this.#isHeld || this.#attempt.isOver ? 'client' : 'backend';
    const message = `no progress at the ${side} for ${this.#options.stallTimeoutMs} ms`;
    if (this.#attempt.isOver) this.#client.cut();
    else this.#attempt.fail('timeout', message);
  }
}
