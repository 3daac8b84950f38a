import { malformed } from './malformed';

/** Bound for the headers of all entries together, which hold a few short names and one file name. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Blanks between a boundary and the end of its line (RFC 2046 §5.1.1). */
const MAX_PADDING_BYTES = 256;
const LINE_END = Buffer.from('\r\n');
const HEADER_END = Buffer.from('\r\n\r\n');
const DASH = 0x2d;

/** What follows the text of a boundary. `none`: the text is content. `unknown`: more bytes are needed. */
type LineRest =
  | { readonly kind: 'entry' | 'close'; readonly end: number }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' };

/**
 * Reads a form from start to end. `#pending` holds bytes that were taken from the source, but not read. The
 * delimiter is searched with the native `indexOf`, which is faster than any network.
 */
export class FormReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #delimiter: Buffer;
  // A form may begin with its first boundary. This line end makes that one look like the others.
  #pending: Buffer = LINE_END;
  #inBody = true;
  #closed = false;
  #headerBytes = 0;
  #takenBytes = 0;
  #sourceEnded = false;

  constructor(source: AsyncIterable<Buffer>, boundary: string) {
    this.#source = source[Symbol.asyncIterator]();
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** Whether the delimiter that was just passed was the closing one. */
  get isAtEnd(): boolean {
    return this.#closed;
  }

  /** How many bytes of the source come before the next byte to be read. */
  get position(): number {
    return this.#takenBytes - this.#pending.length;
  }

  /** Ends the source, even if the form was not read to its end. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  /** Reads what follows the closing delimiter, so that a request that is cut there counts as cut. */
  async readEpilogue(): Promise<void> {
    while ((await this.#source.next()).done !== true);
  }

  /** The bytes between a delimiter and the empty line, beginning with the delimiter's line end. */
  async readHeader(): Promise<Buffer> {
    for (;;) {
      const end = this.#pending.indexOf(HEADER_END);
      const length = end < 0 ? this.#pending.length : end;
      if (this.#headerBytes + length > MAX_HEADER_BYTES) {
        throw malformed(`the headers of its parts are longer than ${MAX_HEADER_BYTES} bytes`);
      }
      if (end >= 0) {
        const header = this.#pending.subarray(0, end);
        this.#pending = this.#pending.subarray(end + HEADER_END.length);
        this.#headerBytes += length;
        this.#inBody = true;
        return header;
      }
      await this.#more();
    }
  }

  async *body(): AsyncGenerator<Buffer> {
    while (this.#inBody) {
      const chunk = await this.#nextOfBody();
      if (chunk.length > 0) yield chunk;
    }
  }

  /** Drops the rest of the body and passes the delimiter after it. */
  async skipToDelimiter(): Promise<void> {
    while (this.#inBody) await this.#nextOfBody();
  }

  /** The next bytes of the body. With the last ones the position moves past the delimiter. */
  async #nextOfBody(): Promise<Buffer> {
    for (let from = 0; ;) {
      const found = this.#pending.indexOf(this.#delimiter, from);
      if (found < 0) return this.#takeSafe(from);
      const rest = this.#restOfLine(found + this.#delimiter.length);
      if (rest.kind === 'unknown') {
        if (found > 0) return this.#take(found);
        await this.#more();
      } else if (rest.kind === 'none') {
        from = found + 1;
      } else {
        this.#closed = rest.kind === 'close';
        this.#inBody = false;
        const chunk = this.#pending.subarray(0, found);
        this.#pending = this.#pending.subarray(rest.end);
        return chunk;
      }
    }
  }

  /** Takes the bytes that cannot begin a delimiter. The last bytes stay until more have arrived. */
  async #takeSafe(from: number): Promise<Buffer> {
    const chunk = this.#take(Math.max(from, this.#pending.length - this.#delimiter.length + 1));
    if (chunk.length === 0) await this.#more();
    return chunk;
  }

  #take(length: number): Buffer {
    const chunk = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return chunk;
  }

  /**
   * Checks what follows the text of the delimiter at `start`. Only optional blanks and a line end, or
   * two dashes before them, make it a delimiter: in `--BX` the text `--B` is content.
   */
  #restOfLine(start: number): LineRest {
    const pending = this.#pending;
    let at = start;
    const isClose = pending[at] === DASH && pending[at + 1] === DASH;
    if (isClose) at += 2;
    while (pending[at] === 0x20 || pending[at] === 0x09) at++;
    if (at - start > MAX_PADDING_BYTES) throw malformed('the line of a boundary is too long');
    const next = pending.subarray(at, at + 2);
    // The line end stays: an entry without header fields has nothing else before its empty line.
    if (next.equals(LINE_END)) return { kind: isClose ? 'close' : 'entry', end: at };
    if (isClose && next.length === 0 && this.#sourceEnded) return { kind: 'close', end: at };
    const mayContinue =
      next.length === 0 ||
      (next.length === 1 && (next[0] === 0x0d || (at === start && next[0] === DASH)));
    return { kind: mayContinue && !this.#sourceEnded ? 'unknown' : 'none' };
  }

  /** Reads more bytes. At the end of the source, the first call records that, and the next one throws. */
  async #more(): Promise<void> {
    if (this.#sourceEnded) throw malformed('it ends before its closing boundary');
    const more = await this.#source.next();
    if (more.done === true) {
      this.#sourceEnded = true;
      return;
    }
    this.#takenBytes += more.value.length;
    const { length } = this.#pending;
    this.#pending = length === 0 ? more.value : Buffer.concat([this.#pending, more.value]);
  }
}
