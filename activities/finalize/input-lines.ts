import { lineParts } from '../../core/openai/member-ranges';
import type { ObjectReader } from '../../storage/object-store';

const WINDOW_BYTES = 256 * 1024;

/** Reads single lines of the input, in order of offset, through one window. */
export class InputLines {
  readonly #reader: ObjectReader;
  #window: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(reader: ObjectReader) {
    this.#reader = reader;
  }

  /** `custom_id` of the line of `length` bytes at `offset`. */
  async customId(offset: number, length: number): Promise<string> {
    if (offset < this.#start || offset + length > this.#start + this.#window.length) {
      this.#window = await this.#reader.read(offset, Math.max(WINDOW_BYTES, length));
      this.#start = offset;
    }
    const at = offset - this.#start;
    return lineParts(this.#window.subarray(at, at + length)).customId;
  }

  close(): Promise<void> {
    return this.#reader.close();
  }
}
