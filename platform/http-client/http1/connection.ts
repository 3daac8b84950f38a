import type { Socket } from 'node:net';
import type { HttpAttempt } from '../attempt';
import { openSocket, type SocketTarget } from './open-socket';
import type { ResponseHead } from './response-head';
import { ResponseParser, type ResponseSink } from './response-parser';
import { writeRequest, type Http1Request } from './write-request';

/** Whose connection it is. */
export interface ConnectionOwner {
  /** It is ready for a first or a further request. */
  onFree(connection: Connection): void;
  /** It was closed, or could not be opened: then with the reason. Called once. */
  onClosed(connection: Connection, notOpened: Error | null): void;
  /** A further request failed because the server had closed the connection. */
  onStale(): void;
}

/** What all connections of a pool share. */
export interface ConnectionOptions {
  readonly target: SocketTarget;
  readonly owner: ConnectionOwner;
  /** Longest time without a request, ms. A server may ask for less. */
  readonly keepAliveMs: number;
}

/** All connections read into one buffer, because nothing of it is used after the read. */
const SHARED = Buffer.allocUnsafeSlow(64 * 1024);
/** A TLS socket may read while another one is written to, so each has its own: as large as a record. */
const TLS_BYTES = 16 * 1024;
/** A connection is closed so long before the server said that it would, ms. */
const HINT_MARGIN_MS = 1_000;

/**
 * One connection, which carries one request at a time.
 *
 * States: connecting → free ⇄ busy → closed.
 */
export class Connection implements ResponseSink {
  /** When it must be closed if it is free, on the monotonic clock, ms. */
  idleUntilMs = 0;
  readonly #o: ConnectionOptions;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  readonly #abort = (): void => this.destroy();
  readonly #resume = (): void => this.#release();
  #attempt: HttpAttempt | null = null;
  #isConnecting = true;
  #isClosed = false;
  #isHeld = false;
  #persists = true;
  #hintMs: number | null = null;
  /** Requests before the present one. */
  #served = 0;
  #hasAnswered = false;
  #error: Error | null = null;

  constructor(options: ConnectionOptions) {
    this.#o = options;
    const isTls = options.target.url.protocol === 'https:';
    const socket = openSocket(options.target, {
      buffer: isTls ? Buffer.allocUnsafeSlow(TLS_BYTES) : SHARED,
      callback: (length, buffer) => this.#onRead(buffer as Buffer, length),
    });
    socket.once(isTls ? 'secureConnect' : 'connect', () => this.#onOpened());
    socket.on('error', (error) => (this.#error = error));
    socket.on('end', () => this.#onServerClosed());
    socket.on('close', () => this.#onSocketClosed());
    this.#socket = socket;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends a request on a free connection. False if its attempt ended before its first byte; it stays free then. */
  send(request: Http1Request, attempt: HttpAttempt): boolean {
    try {
      attempt.onConnect(this.#abort);
    } catch (error) {
      attempt.onError(error as Error);
      return false;
    }
    this.#attempt = attempt;
    this.#hasAnswered = false;
    this.#parser.begin();
    try {
      writeRequest(this.#socket, this.#o.target.url.host, request);
    } catch (error) {
      this.#fail(error as Error);
    }
    return true;
  }

  /** Closes the connection, also in the middle of a request, which gets no further call. */
  destroy(): void {
    this.#attempt = null;
    this.#leave();
  }

  onInterim(status: number): void {
    if (status !== 100) this.#attempt?.onInterim(status);
  }

  onHead(head: ResponseHead): void {
    this.#persists = head.persists;
    this.#hintMs = keepAliveHint(head);
    this.#attempt?.onHead(head.status, head, this.#resume);
  }

  onBody(piece: Buffer): void {
    const attempt = this.#attempt;
    if (attempt === null) return;
    // This memory is read into again.
    const isWanted = attempt.onData(attempt.copiesBytes ? piece : Buffer.from(piece));
    if (!isWanted && !attempt.isOver) this.#isHeld = true;
  }

  #onOpened(): void {
    this.#isConnecting = false;
    this.#onFree();
  }

  /** @returns whether to read on */
  #onRead(buffer: Buffer, length: number): boolean {
    this.#hasAnswered = true;
    const used = this.#parse(buffer.subarray(0, length));
    if (this.#isClosed) return false;
    // Bytes behind an answer could be taken for the answer to the next request.
    if (used < length) this.#persists = false;
    if (this.#parser.isIdle) this.#onAnswered();
    return !this.#isHeld;
  }

  #parse(bytes: Buffer): number {
    try {
      return this.#parser.push(bytes);
    } catch (error) {
      this.#fail(error as Error);
      return 0;
    }
  }

  #onAnswered(): void {
    const attempt = this.#attempt;
    this.#attempt = null;
    this.#isHeld = false;
    // What is still being sent would be taken for the next request.
    const isReusable = this.#persists && attempt !== null && this.#socket.writableLength === 0;
    if (isReusable) {
      this.#served++;
      this.#onFree();
    } else this.#leave();
    // After it is free, so that the next request can have it.
    attempt?.onComplete(null);
  }

  #onFree(): void {
    const keepMs = Math.min(this.#o.keepAliveMs, this.#hintMs ?? Infinity);
    this.idleUntilMs = performance.now() + keepMs;
    if (keepMs > 0) this.#o.owner.onFree(this);
    else this.#leave();
  }

  /** The attempt takes bytes again. */
  #release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#socket.resume();
  }

  #onServerClosed(): void {
    if (this.#parser.close()) {
      this.#persists = false;
      this.#onAnswered();
    } else this.#fail(new Error('the server closed the connection'));
  }

  #onSocketClosed(): void {
    this.#fail(this.#error ?? new Error('the connection was closed'));
  }

  #fail(error: Error): void {
    const attempt = this.#attempt;
    this.#attempt = null;
    if (this.#isConnecting) this.#error ??= error;
    if (attempt !== null && this.#served > 0 && !this.#hasAnswered) this.#o.owner.onStale();
    this.#leave();
    attempt?.onError(error);
  }

  #leave(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.destroy();
    this.#o.owner.onClosed(this, this.#isConnecting ? this.#error : null);
  }
}

/** How long the server keeps the connection (`Keep-Alive: timeout=5`), less a margin, ms; null if it does not say it. */
function keepAliveHint(head: ResponseHead): number | null {
  const seconds = /(?:^|[ ,])timeout=(\d{1,9})/i.exec(head.first('keep-alive') ?? '')?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000 - HINT_MARGIN_MS;
}
