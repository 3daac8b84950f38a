import { queueTimeMs } from '../core/dispatch/queue-time';
import {
  HttpAttempt,
  type AttemptFailure,
  type ResponseReader,
} from '../platform/http-client/attempt';
import { createContentDecoder, type ContentDecoder } from '../platform/http-client/content-decoder';
import type { HeaderFields } from '../platform/http-client/header-fields';
import type { BackendFailure, BackendOutcome, BackendRequest, SentRequest } from './backend';
import type { DispatchReports } from './dispatch-reports';

/** One request and the limits of its answer. */
export interface BufferedExchangeOptions {
  readonly request: BackendRequest;
  readonly reports: DispatchReports;
  /** Largest answer after content decoding. */
  readonly maxAnswerBytes: number;
  /** Time limit, ms. It begins anew when the gateway reports that it dispatched the request. */
  readonly timeoutMs: number;
  /** Called exactly once, before the request is told its end. */
  readonly onEnded: () => void;
}

/** The interim answer with which a gateway reports that it dispatched a request: Processing (RFC 2518). */
const DISPATCHED = 102;

/** Header fields of an answer that decide what happens with it. */
interface AnswerHead {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly droppedReason: string | null;
  readonly dropped: string | null;
  readonly isFinal: boolean;
  readonly contentType: string | null;
  readonly queueMs: number | null;
  readonly requestId: string | null;
  readonly encoding: string | null;
  readonly contentLength: number | null;
}

/**
 * One request whose answer is buffered, because an answer goes to the journal in one piece. It decodes the
 * content, limits the size, and stops reading from the connection while memory is short.
 */
export class BufferedExchange implements ResponseReader, SentRequest {
  /** The handler for undici. */
  readonly attempt: HttpAttempt;
  readonly #options: BufferedExchangeOptions;
  #head: AnswerHead | null = null;
  #decoder: ContentDecoder | null = null;
  #chunks: Buffer[] = [];
  #receivedBytes = 0;
  #keptBytes = 0;
  #isDispatched = false;
  #isGivenBack = false;

  constructor(options: BufferedExchangeOptions) {
    this.#options = options;
    const { timeoutMs } = options;
    this.attempt = new HttpAttempt({ timeoutMs, reader: this });
  }

  abort(): void {
    this.attempt.abort();
  }

  closeIfHeld(): void {
    if (this.attempt.isOver || !this.#isHeld()) return;
    this.#isGivenBack = true;
    this.attempt.abort();
  }

  maySend(): boolean {
    return this.#options.request.maySend?.() ?? true;
  }

  onInterim(status: number): void {
    if (status !== DISPATCHED || this.#isDispatched) return;
    this.#isDispatched = true;
    const { reports, request } = this.#options;
    reports.onReport();
    // Only once: a server that repeats it gets no further time. Nor does a chunk that is leaving: Temporal ends
    // its attempt if it waits longer than `request_timeout`.
    if (request.isLeaving?.() !== true) this.attempt.restartTimer();
  }

  onHead(status: number, fields: HeaderFields): void {
    const head = readHead(status, fields);
    this.#head = head;
    if (head.contentLength !== null && head.contentLength > this.#options.maxAnswerBytes) {
      this.#failTooLarge();
    } else if (head.encoding !== null) {
      this.#decoder = this.#createDecoder(head.encoding);
    }
  }

  onBytes(chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    if (this.#decoder === null) this.#keep(chunk);
    else if (this.#receivedBytes > this.#options.maxAnswerBytes) this.#failTooLarge();
    else if (!this.#decoder.write(chunk)) this.attempt.hold();
  }

  onEnd(): void {
    if (this.#decoder === null) this.#answer();
    else this.#decoder.end();
  }

  onFailure(failure: AttemptFailure): void {
    this.#decoder?.destroy();
    this.#chunks = [];
    this.#settle(this.#isGivenBack ? HELD : this.#failed(failure));
  }

  /** Whether the gateway has the request in its queue. An answer that has begun needs no report. */
  #isHeld(): boolean {
    return !this.#isDispatched && this.#head === null && this.#options.reports.areSent;
  }

  #failed({ reason, message }: AttemptFailure): BackendFailure {
    if (reason !== 'timeout' || !this.#isHeld()) return { kind: 'failure', reason, message };
    const { timeoutMs } = this.#options;
    return {
      kind: 'failure',
      reason: 'held',
      message: `the gateway held the request for all of ${timeoutMs} ms`,
    };
  }

  #createDecoder(encoding: string): ContentDecoder | null {
    const sink = {
      onBytes: (chunk: Buffer) => this.#keep(chunk),
      onEnd: () => this.#answer(),
      onBroken: (error: Error) =>
        this.attempt.fail('connection', `the answer's content coding is broken: ${error.message}`),
      onTooLarge: () => this.#failTooLarge(),
    };
    const maxBytes = this.#options.maxAnswerBytes;
    return createContentDecoder(encoding, sink, {
      maxBytes,
      onDrain: () => this.attempt.release(),
    });
  }

  #keep(chunk: Buffer): void {
    if (this.attempt.isOver) return;
    this.#keptBytes += chunk.length;
    if (this.#keptBytes > this.#options.maxAnswerBytes) return this.#failTooLarge();
    this.#chunks.push(chunk);
    const wait = this.#options.request.onBytes?.(chunk.length);
    if (wait === undefined) return;
    this.attempt.hold();
    void wait.then(
      () => this.attempt.release(),
      () => this.attempt.release(),
    );
  }

  #failTooLarge(): void {
    const message = `the answer is larger than ${this.#options.maxAnswerBytes} bytes`;
    this.attempt.fail('too_large', message);
  }

  #answer(): void {
    const head = this.#head;
    if (this.attempt.isOver || head === null) return;
    this.attempt.finish();
    if (head.status < 300) this.#options.reports.onSuccess(this.#isDispatched);
    const [first] = this.#chunks;
    const body =
      first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    // Member by member: with object spreads this took ten times as long, for every request.
    this.#settle({
      kind: 'answer',
      status: head.status,
      body,
      retryAfter: head.retryAfter,
      droppedReason: head.droppedReason,
      dropped: head.dropped,
      isFinal: head.isFinal,
      contentType: head.contentType,
      queueMs: head.queueMs,
      requestId: head.requestId,
    });
  }

  #settle(outcome: BackendOutcome): void {
    const { request, onEnded } = this.#options;
    onEnded();
    request.onSettled(outcome);
  }
}

/** The end of a request that was closed while the gateway held it. */
export const HELD: BackendOutcome = {
  kind: 'failure',
  reason: 'held',
  message: 'the request was given back while the gateway held it',
};

function readHead(status: number, fields: HeaderFields): AnswerHead {
  const length = fields.first('content-length');
  return {
    status,
    retryAfter: fields.first('retry-after'),
    droppedReason: lowerCase(fields.first('x-llm-d-request-dropped-reason')),
    // A success is neither a drop nor tried again, so the usual answer costs no search.
    dropped: status < 400 ? null : lowerCase(fields.first('x-nightshift-dropped')),
    isFinal: status >= 400 && lowerCase(fields.first('x-should-retry')) === 'false',
    contentType: fields.first('content-type'),
    queueMs: queueTimeMs(fields.joined('server-timing')),
    requestId: fields.first('x-request-id'),
    encoding: fields.first('content-encoding'),
    contentLength: length !== null && /^\d+$/.test(length) ? Number(length) : null,
  };
}

function lowerCase(value: string | null): string | null {
  return value === null ? null : value.trim().toLowerCase();
}
