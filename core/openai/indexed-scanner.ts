import {
  MAX_TEXT_BYTES,
  RECORD,
  RECORD_WORDS,
  SHAPE,
  type IndexRules,
  type LineIndex,
} from './line-index';
import type { LineJudge } from './line-judge';
import {
  createLineSplitter,
  type ByteChecks,
  type LineSplitter,
  type RawLine,
} from './line-splitter';
import { PlainRequest } from './plain-request';

/** What an {@link IndexedScanner} needs. */
export interface IndexedScannerOptions {
  readonly index: LineIndex;
  readonly rules: IndexRules;
  readonly checks: ByteChecks;
  readonly judge: Pick<LineJudge, 'line' | 'plain' | 'expect' | 'tooLong'>;
}

const LF = 0x0a;
const CR = 0x0d;
/** Bytes that are taken at once where lines are full of faults. */
const LEAST_BYTES = 64 * 1024;
/** Lines whose ids are looked for at once. What that loads stays in the processor's nearest cache until it is used. */
const EXPECTED_LINES = 128;

/**
 * Passes whole lines to an index, as many as possible at once, and to the judge what it finds. Only lines that the index
 * does not read are split off and parsed.
 */
export function createIndexedScanner(options: IndexedScannerOptions): IndexedScanner {
  return new IndexedScanner(options);
}

class IndexedScanner {
  readonly #options: IndexedScannerOptions;
  readonly #splitter: LineSplitter;
  readonly #request = new PlainRequest();
  /** How much is given to the index next. */
  #bytes = LEAST_BYTES;
  /** Whether the index has refused the line that the splitter has. */
  #isRefused = false;

  constructor(options: IndexedScannerOptions) {
    this.#options = options;
    const { checks, rules, judge } = options;
    const consumer = {
      line: (line: RawLine) => this.#line(line),
      tooLong: (number: number) => judge.tooLong(number),
    };
    this.#splitter = createLineSplitter({ ...rules, checks, consumer });
  }

  /** Takes bytes of `chunk` from `from` on. Returns the position after them. */
  pushSome(chunk: Buffer, from: number): number {
    const lines = this.#wholeLines(chunk, from);
    const taken = lines === null ? 0 : this.#read(lines);
    return taken > 0 ? from + taken : this.#split(chunk, from);
  }

  end(): void {
    this.#splitter.end();
  }

  /** Lines that the index may be given; null if there are none. */
  #wholeLines(chunk: Buffer, from: number): Buffer | null {
    if (!this.#splitter.isBetweenLines) return null;
    const end = chunk.lastIndexOf(LF, from + this.#bytes - 1) + 1;
    return end <= from ? null : chunk.subarray(from, end);
  }

  /** Takes the rest of a line; else bytes whose lines are read one by one, because their encoding has a fault. */
  #split(chunk: Buffer, from: number): number {
    const most = Math.min(chunk.length, from + LEAST_BYTES);
    const lineEnd = this.#splitter.isBetweenLines ? 0 : chunk.indexOf(LF, from) + 1;
    const to = lineEnd === 0 ? most : Math.min(most, lineEnd);
    this.#splitter.push(chunk.subarray(from, to));
    return to;
  }

  /** Reads lines. Returns how many bytes it has taken: none if they are not UTF-8. */
  #read(text: Buffer): number {
    const splitter = this.#splitter;
    const { index, rules, checks, judge } = this.#options;
    const found = index.read(text, rules, (bytes) => checks.isUtf8(bytes));
    if (found === null) {
      this.#bytes = LEAST_BYTES;
      return 0;
    }
    const { count, bytes, records } = found;
    this.#request.begin({ found, text, offset: splitter.offset });
    let number = splitter.lines;
    let skipped = 0;
    for (let i = 0; i < count; i++) {
      if (i % EXPECTED_LINES === 0) this.#expect(records, i, count);
      number++;
      const shape = records[i * RECORD_WORDS + RECORD.shape];
      if (shape === SHAPE.usual) judge.plain(number, this.#request.take(i));
      if (shape !== SHAPE.mustBeParsed) continue;
      const start = records[i * RECORD_WORDS + RECORD.start] ?? 0;
      const end = (records[i * RECORD_WORDS + RECORD.end] ?? 0) + 1;
      splitter.skip(number - 1 - splitter.lines, start - skipped);
      this.#parse(text.subarray(start, end));
      skipped = end;
    }
    splitter.skip(number - splitter.lines, bytes - skipped);
    this.#bytes = bytes < text.length ? Math.max(LEAST_BYTES, bytes) : 2 * this.#bytes;
    this.#bytes = Math.min(this.#bytes, MAX_TEXT_BYTES);
    return bytes;
  }

  #expect(records: Uint32Array, from: number, count: number): void {
    const to = Math.min(count, from + EXPECTED_LINES);
    const at = from * RECORD_WORDS + RECORD.idHash;
    this.#options.judge.expect(records, { at, end: to * RECORD_WORDS, stride: RECORD_WORDS });
  }

  #parse(line: Buffer): void {
    this.#isRefused = true;
    this.#splitter.push(line);
    this.#isRefused = false;
  }

  /** Takes a single line. */
  #line(line: RawLine): void {
    const { judge } = this.#options;
    if (this.#isRefused || !this.#isUsual(line)) judge.line(line);
    else judge.plain(line.number, this.#request.take(0));
  }

  #isUsual({ bytes, start, end, offset, encoding }: RawLine): boolean {
    // The index would take a CR for a part of the line end.
    if (encoding === 'invalid' || bytes[end - 1] === CR) return false;
    const { index, rules } = this.#options;
    const text = bytes.subarray(start, end);
    const found = index.read(text, rules);
    if (found?.records[RECORD.shape] !== SHAPE.usual) return false;
    this.#request.begin({ found, text, offset });
    return true;
  }
}
