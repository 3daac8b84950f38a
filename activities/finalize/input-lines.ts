import { missingAs } from '../../core/errors';
import { readLineFields } from '../../core/openai/member-ranges';
import type { ObjectReader } from '../../storage/object-store';

const WINDOW_BYTES = 256 * 1024;
const LF = 0x0a;
/** The next attempt does not find it, and does without. */
const deletedMeanwhile = missingAs(
  'object_store_failed',
  'the input was deleted while it was read',
);

/** Reads single lines of the input in order of offset, through a window. */
export class InputLines {
  readonly #reader: ObjectReader;
  #buffer = Buffer.allocUnsafeSlow(WINDOW_BYTES);
  #window: Buffer = this.#buffer.subarray(0, 0);
  /** Offset of the window in the input. */
  #start = 0;

  constructor(reader: ObjectReader) {
    this.#reader = reader;
  }

  /** Whether the whole line at `offset` is in the window. */
  holds(offset: number): boolean {
    return offset < this.#start + this.#window.length && this.#endOfLine(offset) !== -1;
  }

  /** Reads the line at `offset`, and following lines that fit. @throws object_store_failed */
  async load(offset: number): Promise<void> {
    let length = WINDOW_BYTES;
    await this.#readFrom(offset, length);
    while (this.#endOfLine(offset) === -1) await this.#readFrom(offset, (length *= 2));
  }

  /** `custom_id` of the line at `offset`, which the window must hold. */
  customId(offset: number): string {
    const line = this.#window.subarray(offset - this.#start, this.#endOfLine(offset));
    return readLineFields(line).customId;
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  async #readFrom(offset: number, length: number): Promise<void> {
    if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(length);
    this.#window = await this.#reader.read(offset, length, this.#buffer).catch(deletedMeanwhile);
    this.#start = offset;
  }

  /** Index in the window; -1 if the line continues after the window. */
  #endOfLine(offset: number): number {
    const newline = this.#window.indexOf(LF, offset - this.#start);
    const isLast = this.#start + this.#window.length >= this.#reader.size;
    return newline === -1 && isLast ? this.#window.length : newline;
  }
}
