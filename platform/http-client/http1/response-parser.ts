import { MAX_ANSWER_HEADER_BYTES } from '../attempt';
import { ChunkedBody } from './chunked-body';
import { MalformedResponse } from './malformed-response';
import { CHUNKED, ResponseHead, UNTIL_CLOSE } from './response-head';

/** Receives a response while it arrives. */
export interface ResponseSink {
  onInterim(status: number): void;
  onHead(head: ResponseHead): void;
  /** A piece of the body. Its memory is reused when this returns. */
  onBody(piece: Buffer): void;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const BEGIN = Buffer.from('HTTP/1.');

/**
 * Reads the responses of one connection, one after the other (RFC 9112). Usually a response arrives as a whole, and
 * then nothing of it is copied here.
 *
 * States: idle → head → body → idle; interim responses keep it in `head`.
 */
export class ResponseParser {
  readonly #sink: ResponseSink;
  readonly #onData = (piece: Buffer): void => this.#sink.onBody(piece);
  #state: 'idle' | 'head' | 'body' = 'idle';
  /** Bytes of a head that is not whole yet, at the start of a larger buffer. */
  #partial: Buffer | null = null;
  #partialBytes = 0;
  /** Bytes of the body that are missing, or {@link UNTIL_CLOSE}. */
  #left = 0;
  #chunks: ChunkedBody | null = null;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** A request was sent, so a response follows. */
  begin(): void {
    this.#state = 'head';
  }

  /** Whether the response has ended. */
  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  /**
   * Reads bytes, up to the end of the response.
   *
   * @returns how many of them belong to it
   * @throws MalformedResponse, also for bytes without a request
   */
  push(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && this.#state === 'head') at = this.#readHead(bytes, at);
    if (this.#state === 'body') at = this.#readBody(bytes, at);
    return at;
  }

  /** The server has closed the connection. Returns whether that is the end of the response. */
  close(): boolean {
    return this.#state === 'body' && this.#left === UNTIL_CLOSE;
  }

  #readHead(bytes: Buffer, from: number): number {
    const before = this.#partialBytes;
    const all = before === 0 ? bytes : this.#append(bytes);
    const start = before === 0 ? from : 0;
    requireBegin(all, start);
    const end = all.indexOf(HEAD_END, Math.max(start, before - HEAD_END.length));
    const headBytes = (end === -1 ? all.length : end) - start;
    if (headBytes > MAX_ANSWER_HEADER_BYTES) throw tooLong();
    if (end === -1) {
      if (before === 0) this.#append(bytes.subarray(from));
      return bytes.length;
    }
    this.#forgetPartial();
    this.#onHead(new ResponseHead(all.toString('latin1', start, end)));
    return end + HEAD_END.length - before;
  }

  #onHead(head: ResponseHead): void {
    if (head.isInterim) {
      if (head.status === 101) throw new MalformedResponse('the server switches protocols');
      this.#sink.onInterim(head.status);
      return;
    }
    const bodyBytes = head.bodyBytes;
    this.#chunks = bodyBytes === CHUNKED ? new ChunkedBody() : null;
    this.#left = bodyBytes;
    this.#state = bodyBytes === 0 ? 'idle' : 'body';
    this.#sink.onHead(head);
  }

  #readBody(bytes: Buffer, from: number): number {
    if (from === bytes.length) return from;
    if (this.#chunks !== null) {
      const end = this.#chunks.push(bytes, from, this.#onData);
      if (this.#chunks.isWhole) this.#state = 'idle';
      return end;
    }
    const isOpenEnded = this.#left === UNTIL_CLOSE;
    const end = isOpenEnded ? bytes.length : Math.min(bytes.length, from + this.#left);
    if (!isOpenEnded) {
      this.#left -= end - from;
      if (this.#left === 0) this.#state = 'idle';
    }
    this.#sink.onBody(bytes.subarray(from, end));
    return end;
  }

  /** A server may send a head byte by byte, so the buffer grows by doubling. */
  #append(bytes: Buffer): Buffer {
    const length = this.#partialBytes + bytes.length;
    if (this.#partial === null || this.#partial.length < length) {
      const larger = Buffer.allocUnsafe(2 * length);
      this.#partial?.copy(larger, 0, 0, this.#partialBytes);
      this.#partial = larger;
    }
    bytes.copy(this.#partial, this.#partialBytes);
    this.#partialBytes = length;
    return this.#partial.subarray(0, length);
  }

  #forgetPartial(): void {
    this.#partial = null;
    this.#partialBytes = 0;
  }
}

/** A server that does not speak HTTP fails at its first bytes, not at the time limit. */
function requireBegin(bytes: Buffer, start: number): void {
  const length = Math.min(BEGIN.length, bytes.length - start);
  if (bytes.compare(BEGIN, 0, length, start, start + length) === 0) return;
  throw new MalformedResponse('the server does not speak HTTP/1.1');
}

function tooLong(): MalformedResponse {
  const limit = `${MAX_ANSWER_HEADER_BYTES / 1024} KiB`;
  return new MalformedResponse(
    `the headers of the answer are longer than ${limit}: let the server send less`,
  );
}
