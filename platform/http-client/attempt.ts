import type { HeaderFields } from './header-fields';
import { RawFields } from './raw-headers';
import { TimeLimit, type Limited } from './time-limit';

/**
 * Why one attempt at a request got no response.
 *
 * | reason       | what happened                                        | may the server have it? |
 * |--------------|------------------------------------------------------|-------------------------|
 * | `connect`    | no connection could be made, or none in time         | no                      |
 * | `unsent`     | `maySend` returned false when a connection was ready | no                      |
 * | `connection` | the connection broke, or the response is malformed   | yes                     |
 * | `timeout`    | the response was not complete in time                | yes                     |
 * | `too_large`  | the reader refused a response of this size           | yes                     |
 * | `aborted`    | the caller aborted                                   | yes                     |
 */
export type AttemptFailureReason =
  'connect' | 'unsent' | 'connection' | 'timeout' | 'too_large' | 'aborted';

/** The end of an attempt without a response. */
export interface AttemptFailure {
  readonly reason: AttemptFailureReason;
  readonly message: string;
  /** The code of Node's or undici's error, such as `ECONNREFUSED`; absent if there was no error. */
  readonly code?: string | undefined;
}

/**
 * Consumes the response of one attempt. Calls come in this order: `onInterim` any number of times, `onHead`
 * once, `onBytes` any number of times, `onEnd` once; or `onFailure` once, at any point, and nothing after it.
 */
export interface ResponseReader {
  /** Whether `onBytes` copies what it needs, so that the memory of its chunk may be used again when it returns. */
  readonly copiesBytes?: boolean;
  /** Called when there is a connection, before the first byte. False ends the attempt as `unsent`. */
  maySend?(): boolean;
  /** An interim response (1xx) other than 100, which undici treats as a broken one. Precedes `onHead`. */
  onInterim?(status: number): void;
  /** The final status and the fields of the head. */
  onHead(status: number, fields: HeaderFields): void;
  onBytes(chunk: Buffer): void;
  /**
   * The last byte has arrived; `rawTrailers` is name, value, name, value, …, usually empty. The reader calls
   * {@link HttpAttempt.finish} when it has the response.
   */
  onEnd(rawTrailers: readonly Buffer[]): void;
  onFailure(failure: AttemptFailure): void;
}

/** The time limit and the reader of one attempt. */
export interface AttemptOptions {
  /** Time limit from the creation of the attempt to the last byte of the response, ms; see `restartTimer`. */
  readonly timeoutMs: number;
  readonly reader: ResponseReader;
}

/**
 * One attempt at one request, as the handler that `dispatch` of undici takes. It tracks whether anything
 * was sent, limits the total time, and reports exactly one end. The reader consumes the response.
 *
 * undici calls the methods named `on…`. This older form of its handlers is the one that its HTTP/1.1
 * client uses internally; any other form costs a wrapper and a header object for each request.
 */
export class HttpAttempt implements Limited {
  readonly #options: AttemptOptions;
  readonly #limit: TimeLimit;
  /** Null until there is a connection. Nothing was sent before that. */
  #abortConnection: ((error?: Error) => void) | null = null;
  #resume: (() => void) | null = null;
  #holds = 0;
  #isOver = false;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#limit = new TimeLimit(options.timeoutMs, this);
  }

  /** Whether the attempt has ended, with a response or a failure. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether there was a connection, so that the server may have received something. */
  get hasLeft(): boolean {
    return this.#abortConnection !== null;
  }

  /** Ends the attempt as `aborted`; its connection is destroyed. */
  abort(): void {
    this.fail('aborted', 'the request was aborted');
  }

  /** Ends the attempt with a failure; its connection is destroyed. Does nothing after the end. */
  fail(reason: AttemptFailureReason, message: string, code?: string): void {
    if (this.#isOver) return;
    this.finish();
    this.#options.reader.onFailure({ reason, message, code });
    this.#abortConnection?.();
  }

  /** Ends the attempt with success: the reader has the response. */
  finish(): void {
    this.#isOver = true;
    this.#limit.stop();
  }

  /** Begins the time limit anew. */
  restartTimer(): void {
    this.#limit.restart();
  }

  /** Ends the time limit: from now on, the reader itself limits how long the response may take. */
  liftTimer(): void {
    this.#limit.stop();
  }

  /** Whether the reader copies the bytes that it gets; see {@link ResponseReader.copiesBytes}. */
  get copiesBytes(): boolean {
    return this.#options.reader.copiesBytes === true;
  }

  /** Back-pressure: reads no further until each hold has been released. */
  hold(): void {
    this.#holds++;
  }

  /** The counterpart of one {@link hold}. */
  release(): void {
    this.#holds--;
    if (this.#holds === 0 && !this.#isOver) this.#resume?.();
  }

  onConnect(abort: (error?: Error) => void): void {
    // The process may have been frozen while this attempt waited for a connection, so check again.
    if (this.#options.reader.maySend?.() === false) {
      this.fail('unsent', 'the request was no longer allowed to be sent');
    }
    // Throwing before the first byte is written makes undici drop the request and keep the connection.
    if (this.#isOver) throw new Error('the attempt ended before anything was sent');
    this.#abortConnection = abort;
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) this.onInterim(status);
    else this.onHead(status, new RawFields(rawHeaders), resume);
    return status < 200 || !this.#isOver;
  }

  /** An interim response other than 100. */
  onInterim(status: number): void {
    if (!this.#isOver) this.#options.reader.onInterim?.(status);
  }

  /** The head of the final response. `resume` lets its bytes come again after {@link onData} returned false. */
  onHead(status: number, fields: HeaderFields, resume: () => void): void {
    this.#resume = resume;
    this.#options.reader.onHead(status, fields);
  }

  onData(chunk: Buffer): boolean {
    if (this.#isOver) return false;
    this.#options.reader.onBytes(chunk);
    return this.#holds === 0 && !this.#isOver;
  }

  onComplete(rawTrailers: readonly unknown[] | null): void {
    // The connection may carry another request before the reader has decoded this response.
    this.#resume = null;
    this.#abortConnection = NOTHING;
    // undici declares strings, but for this form of handlers they are buffers, as in `onHeaders`.
    this.#options.reader.onEnd((rawTrailers ?? []) as readonly Buffer[]);
  }

  onError(error: Error): void {
    const reason = this.#abortConnection === null ? 'connect' : 'connection';
    this.fail(reason, describe(error), (error as NodeJS.ErrnoException).code);
  }

  onTimeLimit(): void {
    const { timeoutMs } = this.#options;
    if (this.#abortConnection === null)
      this.fail('connect', `no connection within ${timeoutMs} ms`);
    else this.fail('timeout', `no complete response within ${timeoutMs} ms`);
  }
}

const NOTHING = (): void => undefined;

/**
 * Longest header fields of an answer, bytes: about what common proxies pass on, and four times what Node allows. A server
 * could use the memory of every connection with more.
 */
export const MAX_ANSWER_HEADER_BYTES = 64 * 1024;

/** The message of an error of undici or Node, with its code if the message does not contain it. */
function describe(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return `the headers of the answer are longer than ${MAX_ANSWER_HEADER_BYTES / 1024} KiB: let the server send less`;
  }
  const message = error.message === '' ? error.name : error.message;
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}
