import { malformed } from './malformed';

/** Headers of all parts of a form together: a few short names, and the name of one file. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Blanks between a boundary and the end of its line (RFC 2046 §5.1.1). */
const MAX_PADDING_BYTES = 256;
const LINE_END = Buffer.from('\r\n');
const HEADER_END = Buffer.from('\r\n\r\n');
const DASH = 0x2d;

/** What follows the text of a boundary: `none` means that it is a part of the content. */
type LineRest =
  | { readonly kind: 'part' | 'close'; readonly end: number }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown' };

/** Position in a form: `#pending` holds what was taken from the source and not yet handed out. */
export class FormReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #delimiter: Buffer;
  // The first boundary has no line before it: a line end put in front makes it look like the others.
  #pending: Buffer = LINE_END;
  #inBody = true;
  #closed = false;
  #headerBytes = 0;
  #sourceEnded = false;

  constructor(source: AsyncIterable<Buffer>, boundary: string) {
    this.#source = source[Symbol.asyncIterator]();
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** After a delimiter: whether it was the last one. */
  get isAtEnd(): boolean {
    return this.#closed;
  }

  /** Tells the source that nobody asks for more, also if the form is left early. */
  async letGo(): Promise<void> {
    await this.#source.return?.();
  }

  /** Reads what follows the form, so that a request that is cut there counts as cut. */
  async hearOut(): Promise<void> {
    while ((await this.#source.next()).done !== true);
  }

  /** Everything between a delimiter and the empty line, beginning with the delimiter's line end. */
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

  async skipPastDelimiter(): Promise<void> {
    while (this.#inBody) await this.#nextOfBody();
  }

  /** The next bytes of the body; behind its last ones the reader stands after the delimiter. */
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

  /** The last bytes may be the beginning of a delimiter: they stay until more is known. */
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
   * Looks at what follows the text of the delimiter: only a line end, or two dashes, make it one. `--B`
   * is no delimiter in `--BX`.
   */
  #restOfLine(start: number): LineRest {
    const pending = this.#pending;
    let at = start;
    const isClose = pending[at] === DASH && pending[at + 1] === DASH;
    if (isClose) at += 2;
    while (pending[at] === 0x20 || pending[at] === 0x09) at++;
    if (at - start > MAX_PADDING_BYTES) throw malformed('the line of a boundary is too long');
    const left = pending.subarray(at, at + 2);
    // The line end belongs to the header, which may be empty but for it.
    if (left.equals(LINE_END)) return { kind: isClose ? 'close' : 'part', end: at };
    if (isClose && left.length === 0 && this.#sourceEnded) return { kind: 'close', end: at };
    const mayContinue =
      left.length === 0 ||
      (left.length === 1 && (left[0] === 0x0d || (at === start && left[0] === DASH)));
    return { kind: mayContinue && !this.#sourceEnded ? 'unknown' : 'none' };
  }

  /** Takes more from the source. Its end is seen first, and a fault only when more is needed then. */
  async #more(): Promise<void> {
    if (this.#sourceEnded) throw malformed('it ends before its closing boundary');
    const next = await this.#source.next();
    if (next.done === true) {
      this.#sourceEnded = true;
      return;
    }
    const { length } = this.#pending;
    this.#pending = length === 0 ? next.value : Buffer.concat([this.#pending, next.value]);
  }
}
