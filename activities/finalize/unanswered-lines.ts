import type { LineErrorCode } from '../../core/openai/result-line';
import type { InputLines } from './input-lines';

/** A line that goes to the error file without an answer. */
export interface UnansweredLine {
  readonly offset: number;
  readonly customId: string;
  readonly code: LineErrorCode;
}

/** Lines that may have to be written without an answer, in order of offset. */
export interface LineSource {
  /** Byte offset of the next line; infinity after the last one. */
  readonly offset: number;
  /** Whether the next line can be taken without a read. */
  readonly isReady: boolean;
  /** Reads what `take` needs. @throws object_store_failed */
  load(): Promise<void>;
  /** Takes the next line; null if the input is gone, so that its `custom_id` is unknown. */
  take(): UnansweredLine | null;
  /** Skips the next line, because it has an answer. */
  skip(): void;
}

/** Planned lines that no seal covers. The merge skips lines that have an answer in a rest object. */
export class UncoveredLines implements LineSource {
  readonly #offsets: Float64Array;
  readonly #code: LineErrorCode;
  readonly #input: InputLines | null;
  #next = 0;

  /** @param offsets of the lines, ascending */
  constructor(offsets: Float64Array, options: { code: LineErrorCode; input: InputLines | null }) {
    this.#offsets = offsets;
    this.#code = options.code;
    this.#input = options.input;
  }

  get offset(): number {
    return this.#offsets[this.#next] ?? Number.POSITIVE_INFINITY;
  }

  get isReady(): boolean {
    return this.#input === null || this.#input.holds(this.offset);
  }

  async load(): Promise<void> {
    await this.#input?.load(this.offset);
  }

  take(): UnansweredLine | null {
    const { offset } = this;
    this.#next++;
    if (this.#input === null) return null;
    return { offset, customId: this.#input.customId(offset), code: this.#code };
  }

  skip(): void {
    this.#next++;
  }
}
