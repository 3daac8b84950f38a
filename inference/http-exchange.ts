import type { BackendFailure, BackendOutcome, BackendRequest } from './backend';
import { createAnswerDecoder, type AnswerDecoder } from './answer-decoder';

/** One request and the bounds of its answer. */
export interface ExchangeOptions {
  readonly request: BackendRequest;
  readonly maxAnswerBytes: number;
  readonly timeoutMs: number;
  /** Called exactly once, with the end of this try. */
  readonly onSettled: (outcome: BackendOutcome) => void;
}

/** Header fields of an answer that matter above. */
interface AnswerHead {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly droppedReason: string | null;
  readonly dropped: string | null;
  readonly requestId: string | null;
  readonly encoding: string | null;
  readonly contentLength: number | null;
}

/**
 * One try of one request as undici's handler: collects the answer, watches its size and the total
 * time, and settles exactly once. The methods named `on…` are called by undici's HTTP/1.1 client;
 * this is its own handler form, which spares a wrapper object and a header object per request.
 */
export class HttpExchange {
  readonly #options: ExchangeOptions;
  readonly #timer: NodeJS.Timeout;
  #abortConnection: ((error?: Error) => void) | null = null;
  #resume: (() => void) | null = null;
  #head: AnswerHead | null = null;
  #decoder: AnswerDecoder | null = null;
  #chunks: Buffer[] = [];
  #receivedBytes = 0;
  #keptBytes = 0;
  #holds = 0;
  #settled = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#timer = setTimeout(() => this.#onTimeout(), options.timeoutMs);
  }

  /** Ends the try with `aborted`; the connection is destroyed. */
  abort(): void {
    this.#fail('aborted', 'the request was aborted');
  }

  onConnect(abort: (error?: Error) => void): void {
    // A connection takes its time, also one that is reused: the process may have stood still meanwhile.
    if (this.#options.request.mayLeave?.() === false) {
      this.#fail('unsent', 'the request was not to leave any more');
    }
    // Thrown before the first byte is written: undici drops the request and keeps the connection.
    if (this.#settled) throw new Error('settled before it was sent');
    this.#abortConnection = abort;
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true;
    this.#resume = resume;
    const head = readHead(status, rawHeaders);
    this.#head = head;
    if (head.contentLength !== null && head.contentLength > this.#options.maxAnswerBytes) {
      this.#failTooLarge();
    } else if (head.encoding !== null) {
      this.#decoder = this.#createDecoder(head.encoding);
    }
    return !this.#settled;
  }

  onData(chunk: Buffer): boolean {
    if (this.#settled) return false;
    this.#receivedBytes += chunk.length;
    if (this.#decoder === null) this.#keep(chunk);
    else if (this.#receivedBytes > this.#options.maxAnswerBytes) this.#failTooLarge();
    else if (!this.#decoder.write(chunk)) this.#holds++;
    return this.#holds === 0 && !this.#settled;
  }

  onComplete(): void {
    // The connection may carry another request before the decoder has finished this one.
    this.#resume = null;
    if (this.#decoder === null) this.#answer();
    else this.#decoder.end();
  }

  onError(error: Error): void {
    if (this.#settled) return;
    // Without a connection nothing was sent.
    const reason = this.#abortConnection === null ? 'connect' : 'connection';
    this.#fail(reason, describe(error));
  }

  #createDecoder(encoding: string): AnswerDecoder | null {
    const sink = {
      onBytes: (chunk: Buffer) => this.#keep(chunk),
      onEnd: () => this.#answer(),
      onBroken: (error: Error) =>
        this.#fail('connection', `the answer's content encoding is broken: ${error.message}`),
      onTooLarge: () => this.#failTooLarge(),
    };
    const maxBytes = this.#options.maxAnswerBytes;
    return createAnswerDecoder(encoding, sink, { maxBytes, onRoom: () => this.#unhold() });
  }

  #keep(chunk: Buffer): void {
    if (this.#settled) return;
    this.#keptBytes += chunk.length;
    if (this.#keptBytes > this.#options.maxAnswerBytes) return this.#failTooLarge();
    this.#chunks.push(chunk);
    const wait = this.#options.request.onBytes?.(chunk.length);
    if (wait === undefined) return;
    this.#holds++;
    void wait.then(
      () => this.#unhold(),
      () => this.#unhold(),
    );
  }

  /** Reading goes on when nobody holds it any more. */
  #unhold(): void {
    this.#holds--;
    if (this.#holds === 0 && !this.#settled) this.#resume?.();
  }

  #onTimeout(): void {
    const waitedMs = this.#options.timeoutMs;
    if (this.#abortConnection === null) {
      this.#fail('connect', `no connection within ${waitedMs} ms`);
    } else {
      this.#fail('timeout', `no complete answer within ${waitedMs} ms`);
    }
  }

  #failTooLarge(): void {
    this.#fail('too_large', `the answer is larger than ${this.#options.maxAnswerBytes} bytes`);
  }

  #fail(reason: BackendFailure['reason'], message: string): void {
    if (this.#settled) return;
    this.#settle({ kind: 'failure', reason, message });
    this.#decoder?.destroy();
    this.#chunks = [];
    this.#abortConnection?.();
  }

  #answer(): void {
    const head = this.#head;
    if (this.#settled || head === null) return;
    const [first] = this.#chunks;
    const body =
      first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#settle({
      kind: 'answer',
      status: head.status,
      body,
      retryAfter: head.retryAfter,
      droppedReason: head.droppedReason,
      dropped: head.dropped,
      requestId: head.requestId,
    });
  }

  #settle(outcome: BackendOutcome): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#options.onSettled(outcome);
  }
}

/** Picks the few known fields by length first, without decoding the others. */
function readHead(status: number, raw: readonly Buffer[]): AnswerHead {
  const field = (name: string): string | null => {
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const candidate = raw[i];
      if (candidate?.length !== name.length) continue;
      if (candidate.toString('latin1').toLowerCase() === name)
        return raw[i + 1]?.toString('latin1') ?? null;
    }
    return null;
  };
  const length = field('content-length');
  return {
    status,
    retryAfter: field('retry-after'),
    droppedReason: field('x-llm-d-request-dropped-reason')?.trim().toLowerCase() ?? null,
    // A success is never a drop: the usual answer costs no search.
    dropped: status < 400 ? null : (field('x-nightshift-dropped')?.trim().toLowerCase() ?? null),
    requestId: field('x-request-id'),
    encoding: field('content-encoding'),
    contentLength: length !== null && /^\d+$/.test(length) ? Number(length) : null,
  };
}

function describe(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code;
  const message = error.message === '' ? error.name : error.message;
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}
