import { createLineSplitter, type RawLine } from '../../core/openai/line-splitter';
import { readLineFields } from '../../core/openai/member-ranges';
import type { InputFiles } from '../../core/plan/input-files';
import type { ObjectStore } from '../../storage/object-store';
import { indexOfOffset } from './plan-offsets';
import { codeOutsidePlans } from './outside-plans';
import type { LineSource, UnansweredLine } from './unanswered-lines';

/** The input of a batch. */
export interface InputToRead {
  readonly store: ObjectStore;
  readonly key: string;
  /** The files that requests name; null if they name none. */
  readonly files: InputFiles | null;
}

/** Lines of the input that are in no plan, because no gateway serves their model or the file that they name is unknown. */
export class UnroutedLines implements LineSource {
  readonly #groups: AsyncIterator<UnansweredLine[]>;
  #group: UnansweredLine[] = [];
  #next = 0;
  /** Must be read before the last line of `#group` is taken, because `offset` needs it afterwards. */
  #following: UnansweredLine[] | null = null;

  private constructor(groups: AsyncIterator<UnansweredLine[]>) {
    this.#groups = groups;
  }

  /** Opens the input and reads the first lines. @throws object_store_failed */
  static async open(input: InputToRead, planned: Float64Array): Promise<UnroutedLines> {
    const lines = new UnroutedLines(unroutedLines(input, planned));
    await lines.load();
    lines.#nextGroup();
    return lines;
  }

  get offset(): number {
    return this.#group[this.#next]?.offset ?? Number.POSITIVE_INFINITY;
  }

  get isReady(): boolean {
    return this.#next < this.#group.length - 1 || this.#following !== null;
  }

  async load(): Promise<void> {
    const next = await this.#groups.next();
    this.#following = next.done === true ? [] : next.value;
  }

  take(): UnansweredLine | null {
    const line = this.#group[this.#next] ?? null;
    this.skip();
    return line;
  }

  skip(): void {
    this.#next++;
    if (this.#next >= this.#group.length) this.#nextGroup();
  }

  /** Closes the input. */
  async close(): Promise<void> {
    await this.#groups.return?.();
  }

  #nextGroup(): void {
    this.#group = this.#following ?? [];
    this.#following = null;
    this.#next = 0;
  }
}

async function* unroutedLines(
  { store, key, files }: InputToRead,
  planned: Float64Array,
): AsyncGenerator<UnansweredLine[]> {
  let found: UnansweredLine[] = [];
  const line = ({ bytes, start, end, offset }: RawLine) => {
    if (indexOfOffset(planned, offset) !== -1) return;
    const line = bytes.subarray(start, end);
    const { customId } = readLineFields(line);
    found.push({ offset, customId, code: codeOutsidePlans(line, files) });
  };
  // Ingestion has checked encoding and lengths already.
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
