import type { ServerResponse } from 'node:http';
import { fieldOf, type RawHeaders } from './forwarded-headers';

const NO_BYTES = Buffer.alloc(0);

/** Called by a {@link ClientAnswer}. */
export interface ClientEvents {
  /** The client took everything that was written, after `write` had returned false. */
  onDrain(): void;
  /** The answer was sent completely, or the client's connection is closed; nothing follows. */
  onClose(): void;
}

/** The answer of a backend, as it is written to one client. */
export class ClientAnswer {
  readonly #response: ServerResponse;
  readonly #events: ClientEvents;
  #isHeadSent = false;
  #isHeadFlushed = false;
  #hasLength = false;
  #isWatched = false;
  readonly #flushHead = (): void => {
    // Like `flushHeaders`, which however encodes the head in UTF-8 and so changes fields that are not ASCII.
    if (!this.#isHeadFlushed && !this.isClosed) this.write(NO_BYTES);
  };
  readonly #onDrain = (): void => this.#events.onDrain();
  readonly #onClose = (): void => this.#events.onClose();

  constructor(response: ServerResponse, events: ClientEvents) {
    this.#response = response;
    this.#events = events;
    response.on('close', this.#onClose);
  }

  get isHeadSent(): boolean {
    return this.#isHeadSent;
  }

  /** Whether nothing can be written any more. */
  get isClosed(): boolean {
    return this.#response.destroyed || this.#response.closed;
  }

  /**
   * Sends the head at once, in one packet with the bytes that arrived together with it.
   * @throws if Node refuses a field
   */
  head(status: number, headers: RawHeaders): void {
    // Without a reason phrase: Node adds the standard one. undici may give that of an earlier answer.
    this.#response.writeHead(status, headers as string[]);
    this.#isHeadSent = true;
    this.#hasLength = fieldOf(headers, 'content-length') !== null;
    // Bytes that were read together with the head are written before this, and Node sends the head with them.
    process.nextTick(this.#flushHead);
  }

  /** @returns false if the client's socket is full; `onDrain` follows */
  write(chunk: Buffer): boolean {
    this.#isHeadFlushed = true;
    const hasRoom = this.#response.write(chunk);
    if (!hasRoom) this.#watchDrain();
    return hasRoom;
  }

  /** Ends the answer. Trailers are sent only if the answer to the client is chunked. */
  end(trailers: RawHeaders): void {
    if (this.isClosed) return;
    this.#isHeadFlushed = true;
    if (trailers.length > 0) this.#response.addTrailers(pairs(trailers));
    this.#response.end();
  }

  /** Leaves the response to the caller, who may write to it. The events end. */
  detach(): void {
    this.#response.off('drain', this.#onDrain);
    this.#response.off('close', this.#onClose);
  }

  /** Most answers never fill the socket of their client. */
  #watchDrain(): void {
    if (!this.#isWatched) this.#response.on('drain', this.#onDrain);
    this.#isWatched = true;
  }

  /**
   * Closes the client's connection in the middle of the answer. An answer that neither has a length nor is chunked
   * (HTTP/1.0) would look complete after that, so its connection is reset.
   */
  cut(): void {
    const { socket, chunkedEncoding } = this.#response;
    if (!this.#hasLength && !chunkedEncoding) socket?.resetAndDestroy();
    this.#response.destroy();
  }
}

function pairs(headers: RawHeaders): [string, string][] {
  return Array.from({ length: headers.length / 2 }, (_, i) => [
    headers[2 * i] ?? '',
    headers[2 * i + 1] ?? '',
  ]);
}
