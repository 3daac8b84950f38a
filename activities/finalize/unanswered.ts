import { createLineSplitter, type RawLine } from '../../core/openai/line-splitter';
import { lineParts } from '../../core/openai/member-ranges';
import type { LineErrorCode } from '../../core/openai/result-line';
import type { ObjectStore } from '../../storage/object-store';
import type { InputLines } from './input-lines';
import { indexOfOffset } from './plan-offsets';

/** A line that goes to the error file without an answer. */
export interface UnansweredLine {
  readonly offset: number;
  readonly customId: string;
  readonly code: LineErrorCode;
}

/** Lines that may have to be written without an answer, in order of offset. */
export interface LineSource {
  /** Of the next line; infinity at the end. */
  readonly offset: number;
  /** Whether the next line can be taken without a read. */
  readonly isReady: boolean;
  /** Makes it so. @throws object_store_failed */
  load(): Promise<void>;
  /** The next line, which is passed with it; null where the input is gone and cannot name it. */
  take(): UnansweredLine | null;
  /** Passes the next line: it has an answer. */
  skip(): void;
}

/** Planned lines outside the seals: each is unanswered unless the merge comes upon its frame. */
export class OpenLines implements LineSource {
  readonly #offsets: Float64Array;
  readonly #code: LineErrorCode;
  readonly #input: InputLines | null;
  #next = 0;

  /** @param offsets ascending */
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

/** Lines of the input that no plan holds, because no backend serves their model. */
export class UnroutedLines implements LineSource {
  readonly #batches: AsyncIterator<UnansweredLine[]>;
  #batch: UnansweredLine[] = [];
  #next = 0;
  /** Known before the last line of `batch` is taken, for it says what is next then. */
  #following: UnansweredLine[] | null = null;

  private constructor(batches: AsyncIterator<UnansweredLine[]>) {
    this.#batches = batches;
  }

  /** Begins to read the input. @throws object_store_failed */
  static async open(
    input: { store: ObjectStore; key: string },
    planned: Float64Array,
  ): Promise<UnroutedLines> {
    const lines = new UnroutedLines(unroutedLines(input, planned));
    await lines.load();
    lines.#passBatch();
    return lines;
  }

  get offset(): number {
    return this.#batch[this.#next]?.offset ?? Number.POSITIVE_INFINITY;
  }

  get isReady(): boolean {
    return this.#next < this.#batch.length - 1 || this.#following !== null;
  }

  async load(): Promise<void> {
    const next = await this.#batches.next();
    this.#following = next.done === true ? [] : next.value;
  }

  take(): UnansweredLine | null {
    const line = this.#batch[this.#next] ?? null;
    this.skip();
    return line;
  }

  skip(): void {
    this.#next++;
    if (this.#next >= this.#batch.length) this.#passBatch();
  }

  /** Closes the input. */
  async close(): Promise<void> {
    await this.#batches.return?.();
  }

  #passBatch(): void {
    this.#batch = this.#following ?? [];
    this.#following = null;
    this.#next = 0;
  }
}

async function* unroutedLines(
  { store, key }: { store: ObjectStore; key: string },
  planned: Float64Array,
): AsyncGenerator<UnansweredLine[]> {
  let found: UnansweredLine[] = [];
  const line = ({ bytes, start, end, offset }: RawLine) => {
    if (indexOfOffset(planned, offset) !== -1) return;
    const { customId } = lineParts(bytes.subarray(start, end));
    found.push({ offset, customId, code: 'model_not_found' });
  };
  // The file passed validation: encodings and lengths are not looked at again.
  const splitter = createLineSplitter({
    maxLineBytes: Number.POSITIVE_INFINITY,
    checks: { isAscii: () => true, isUtf8: () => true },
    consumer: { line, tooLong: () => undefined },
  });
  for await (const chunk of store.stream(key) as AsyncIterable<Buffer>) {
    splitter.push(chunk);
    if (found.length === 0) continue;
    yield found;
    found = [];
  }
  splitter.end();
  if (found.length > 0) yield found;
}
