/**
 * Splits a file into lines (docs/design/api-contract.md#line-format): one leading UTF-8 BOM is removed, a
 * line ends with LF, CRLF or the end of the file, and blank lines are counted but skipped.
 */
export interface LineSplitter {
  /** Takes the next bytes of the file. They may be changed after this returns. */
  push(chunk: Buffer): void;
  /** The file has ended. Its last line needs no newline. */
  end(): void;
  /** Whether the first line is finished, and nothing of a further one was taken. */
  readonly isBetweenLines: boolean;
  /** Lines so far, and the bytes of the finished ones. */
  readonly lines: number;
  readonly offset: number;
  /** Counts whole lines that the caller has read itself. */
  skip(lines: number, bytes: number): void;
}

/** Receives the lines, in order. */
export interface LineConsumer {
  /** A line that is neither blank nor too long. Its bytes are valid until this returns. */
  line(line: RawLine): void;
  /** A line of more than `maxLineBytes`. */
  tooLong(number: number): void;
}

/** Bytes `[start, end)` of `bytes`, without line end and BOM. */
export interface RawLine {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** Of the first byte, in the file. */
  readonly offset: number;
  /** Counted from 1, blank lines included. */
  readonly number: number;
  readonly encoding: LineEncoding;
}

/** `ascii` is valid UTF-8 too. */
export type LineEncoding = 'ascii' | 'utf8' | 'invalid';

/** `isAscii` and `isUtf8` of `node:buffer`. Callers pass them, because core imports no Node modules. */
export interface ByteChecks {
  isAscii(bytes: Uint8Array): boolean;
  isUtf8(bytes: Uint8Array): boolean;
}

export interface LineSplitterOptions {
  readonly maxLineBytes: number;
  readonly checks: ByteChecks;
  readonly consumer: LineConsumer;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
/** A pending line that exceeds the limit by more than this is too long even without its BOM and CR. */
const SLACK = BOM.length + 1;

/** A splitter that buffers at most one line, and no bytes of a line that is too long. */
export function createLineSplitter(options: LineSplitterOptions): LineSplitter {
  return new ChunkSplitter(options);
}

class ChunkSplitter implements LineSplitter {
  readonly #options: LineSplitterOptions;
  /** Offset of the first byte that is not yet part of a finished line. */
  offset = 0;
  lines = 0;
  /** The beginning of an unfinished line; empty once that is too long. */
  #pieces: Buffer[] = [];
  #pendingBytes = 0;

  constructor(options: LineSplitterOptions) {
    this.#options = options;
  }

  get isBetweenLines(): boolean {
    return this.lines > 0 && this.#pendingBytes === 0;
  }

  skip(lines: number, bytes: number): void {
    this.lines += lines;
    this.offset += bytes;
  }

  push(chunk: Buffer): void {
    let start = 0;
    if (this.#pendingBytes > 0) {
      const newline = chunk.indexOf(LF);
      this.#keep(chunk, 0, newline === -1 ? chunk.length : newline);
      if (newline === -1) return;
      this.#finishPending(1);
      start = newline + 1;
    }
    const end = chunk.lastIndexOf(LF) + 1;
    if (end > start) this.#wholeLines(chunk.subarray(start, end));
    this.#keep(chunk, Math.max(start, end), chunk.length);
  }

  end(): void {
    if (this.#pendingBytes > 0) this.#finishPending(0);
  }

  /** Takes whole lines. One check of the encoding for all of them costs almost nothing. */
  #wholeLines(region: Buffer): void {
    const encoding = this.#encodingOf(region);
    let start = 0;
    while (start < region.length) {
      const newline = region.indexOf(LF, start);
      this.#line(region, start, newline, encoding);
      this.offset += newline + 1 - start;
      start = newline + 1;
    }
  }

  /** Copies, so that a small piece does not keep a large chunk in memory. */
  #keep(chunk: Buffer, start: number, end: number): void {
    if (end === start) return;
    this.#pendingBytes += end - start;
    if (this.#pendingBytes > this.#options.maxLineBytes + SLACK) this.#pieces = [];
    else this.#pieces.push(Buffer.from(chunk.subarray(start, end)));
  }

  #finishPending(newlineBytes: number): void {
    const line = Buffer.concat(this.#pieces);
    if (line.length < this.#pendingBytes) this.#options.consumer.tooLong(++this.lines);
    else this.#line(line, 0, line.length, this.#encodingOf(line));
    this.offset += this.#pendingBytes + newlineBytes;
    this.#pieces = [];
    this.#pendingBytes = 0;
  }

  #line(bytes: Buffer, lineStart: number, lineEnd: number, encoding: LineEncoding): void {
    const number = ++this.lines;
    const start = lineStart + (number === 1 ? bomLength(bytes, lineStart, lineEnd) : 0);
    const end = lineEnd > start && bytes[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd;
    if (end - start > this.#options.maxLineBytes) {
      this.#options.consumer.tooLong(number);
      return;
    }
    if (isBlank(bytes, start, end)) return;
    const offset = this.offset + start - lineStart;
    const own = encoding === 'invalid' ? this.#encodingOf(bytes.subarray(start, end)) : encoding;
    this.#options.consumer.line({ bytes, start, end, offset, number, encoding: own });
  }

  #encodingOf(bytes: Buffer): LineEncoding {
    const { checks } = this.#options;
    if (checks.isAscii(bytes)) return 'ascii';
    return checks.isUtf8(bytes) ? 'utf8' : 'invalid';
  }
}

function bomLength(bytes: Buffer, start: number, end: number): number {
  const fits = end - start >= BOM.length;
  return fits && bytes.compare(BOM, 0, BOM.length, start, start + BOM.length) === 0
    ? BOM.length
    : 0;
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== TAB && byte !== CR) return false;
  }
  return true;
}
