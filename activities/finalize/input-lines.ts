import { lineParts } from '../../core/openai/member-ranges';
import type { ObjectReader } from '../../storage/object-store';

const WINDOW_BYTES = 256 * 1024;
const LF = 0x0a;

/** Reads single lines of the input, in order of offset, through one window. */
export class InputLines {
  readonly #reader: ObjectReader;
  #buffer = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  #window: Buffer = this.#buffer.subarray(0, 0);
  /** Of the window in the input. */
  #start = 0;

  constructor(reader: ObjectReader) {
    this.#reader = reader;
  }

  /** `custom_id` of the line at `offset`. */
  async customId(offset: number): Promise<string> {
    if (offset >= this.#start + this.#window.length) await this.#readFrom(offset);
    let end = this.#endOfLine(offset);
    for (let length = WINDOW_BYTES; end === -1; length *= 2) {
      await this.#readFrom(offset, length);
      end = this.#endOfLine(offset);
    }
    return lineParts(this.#window.subarray(offset - this.#start, end)).customId;
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  async #readFrom(offset: number, length = WINDOW_BYTES): Promise<void> {
    if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(length);
    this.#window = await this.#reader.read(offset, length, this.#buffer);
    this.#start = offset;
  }

  /** In the window; -1 where the line goes on behind it. */
  #endOfLine(offset: number): number {
    const newline = this.#window.indexOf(LF, offset - this.#start);
    const isLast = this.#start + this.#window.length >= this.#reader.size;
    return newline === -1 && isLast ? this.#window.length : newline;
  }
}
