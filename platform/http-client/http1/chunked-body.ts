import { MalformedResponse } from './malformed-response';

/** Chunk extensions and trailers are ignored, so a server has no reason to send more of them, bytes. */
const MAX_IGNORED_BYTES = 64 * 1024;
/** 13 hexadecimal digits are a length that a number holds exactly. */
const MAX_SIZE_DIGITS = 13;
const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
const SPACE = 0x20;
const TAB = 0x09;

type Expected =
  | 'size'
  | 'extension'
  | 'end of size'
  | 'data'
  | 'end of data'
  | 'line feed after data'
  | 'trailer or end'
  | 'trailer'
  | 'line feed at the end'
  | 'nothing';

/** Decodes a body in chunks (RFC 9112, section 7.1). Lines end with CR and LF. */
export class ChunkedBody {
  #expected: Expected = 'size';
  #digits = 0;
  #size = 0;
  #ignoredBytes = 0;

  get isWhole(): boolean {
    return this.#expected === 'nothing';
  }

  /**
   * Decodes `bytes` from `start` on, up to the end of the body.
   *
   * @param onData called with each piece of content, which shares the memory of `bytes`
   * @returns the position after the last byte of the body, or the length of `bytes`
   * @throws MalformedResponse
   */
  push(bytes: Buffer, start: number, onData: (piece: Buffer) => void): number {
    let at = start;
    while (at < bytes.length && this.#expected !== 'nothing') {
      if (this.#expected === 'data') {
        const end = Math.min(bytes.length, at + this.#size);
        this.#size -= end - at;
        if (this.#size === 0) this.#expected = 'end of data';
        onData(bytes.subarray(at, end));
        at = end;
      } else this.#step(bytes[at++] ?? 0);
    }
    return at;
  }

  #step(byte: number): void {
    switch (this.#expected) {
      case 'size':
        return this.#onSize(byte);
      case 'extension':
        return byte === CR ? this.#expect('end of size') : this.#ignore(byte);
      case 'end of size':
        expectByte(byte, LF);
        return this.#expect(this.#size === 0 ? 'trailer or end' : 'data');
      case 'end of data':
        expectByte(byte, CR);
        return this.#expect('line feed after data');
      case 'line feed after data':
        expectByte(byte, LF);
        this.#digits = 0;
        return this.#expect('size');
      case 'trailer or end':
        if (byte === CR) return this.#expect('line feed at the end');
        this.#expect('trailer');
        return this.#ignore(byte);
      case 'trailer':
        if (byte === LF) this.#expect('trailer or end');
        return this.#ignore(byte);
      case 'line feed at the end':
        expectByte(byte, LF);
        return this.#expect('nothing');
      case 'data':
      case 'nothing':
    }
  }

  #onSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit !== null && this.#digits < MAX_SIZE_DIGITS) {
      this.#digits++;
      this.#size = this.#size * 16 + digit;
      return;
    }
    if (this.#digits === 0) throw malformed();
    if (byte === CR) this.#expect('end of size');
    else if (byte === SEMICOLON || byte === SPACE || byte === TAB) this.#expect('extension');
    else throw malformed();
  }

  #expect(next: Expected): void {
    this.#expected = next;
  }

  #ignore(byte: number): void {
    const isBareLf = byte === LF && this.#expected === 'extension';
    if (isBareLf || ++this.#ignoredBytes > MAX_IGNORED_BYTES) throw malformed();
  }
}

function expectByte(byte: number, expected: number): void {
  if (byte !== expected) throw malformed();
}

function malformed(): MalformedResponse {
  return new MalformedResponse('the chunks of the answer are malformed');
}

function hexDigit(byte: number): number | null {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : null;
}
