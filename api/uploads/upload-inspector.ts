import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { createJsonGuard } from '../../core/openai/json-check';
import { isJsonObject } from '../../core/openai/json-object';

/** Facts about the bytes of an upload, collected while they stream through. */
export interface UploadFacts {
  readonly bytes: number;
  readonly sha256: Buffer;
  readonly isUtf8: boolean;
  /**
   * Of the first line that is not blank. `jsonl`: it is a JSON object, or too long or too complex to be
   * parsed here; ingestion reports such a line with its number. `blank`: there is no such line.
   */
  readonly firstLine: 'jsonl' | 'other' | 'blank';
}

/**
 * Inspects an upload chunk by chunk. Which facts matter depends on the purpose, which may be the last field
 * of the form, so all facts are collected.
 */
export interface UploadInspector {
  /** Bytes so far. */
  readonly bytes: number;
  update(chunk: Buffer): void;
  finish(): UploadFacts;
}

/** A longer first line is neither kept nor parsed, because many uploads arrive at once. */
const MAX_INSPECTED_BYTES = 1024 * 1024;
const faultOf = createJsonGuard({ maxDepth: 10_000, maxTokens: 2_000_000 });
const BOM = [0xef, 0xbb, 0xbf];
const LINE_END = 0x0a;
const BRACE = 0x7b;

/** An inspector that keeps at most `maxLineBytes`, and at most 1 MiB. */
export function createUploadInspector(maxLineBytes: number): UploadInspector {
  const hash = createHash('sha256');
  const utf8 = createUtf8Check();
  const firstLine = new FirstLine(maxLineBytes);
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    update(chunk) {
      bytes += chunk.length;
      hash.update(chunk);
      utf8.update(chunk);
      firstLine.update(chunk);
    },
    finish: () => ({
      bytes,
      sha256: hash.digest(),
      isUtf8: utf8.finish(),
      firstLine: firstLine.finish(),
    }),
  };
}

/** The native check needs complete sequences, so the bytes of a cut one wait for the next chunk. */
function createUtf8Check(): { update(chunk: Buffer): void; finish(): boolean } {
  let valid = true;
  let rest: Buffer = Buffer.alloc(0);
  return {
    update(chunk) {
      if (!valid) return;
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const whole = bytes.length - unfinishedBytes(bytes);
      valid = isUtf8(bytes.subarray(0, whole));
      rest = Buffer.from(bytes.subarray(whole));
    },
    finish: () => valid && rest.length === 0,
  };
}

/** Bytes of an incomplete sequence at the end, 0 to 3. */
function unfinishedBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/** Collects the first line that is not blank, and stops as soon as it cannot be an object. */
class FirstLine {
  readonly #maxBytes: number;
  #position = 0;
  #line: Buffer[] = [];
  #length = 0;
  #verdict: UploadFacts['firstLine'] | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = Math.min(maxBytes, MAX_INSPECTED_BYTES);
  }

  update(chunk: Buffer): void {
    if (this.#verdict !== null) return;
    const start = this.#length === 0 ? this.#blanksBefore(chunk) : 0;
    this.#position += chunk.length;
    if (start === chunk.length) return;
    const end = chunk.indexOf(LINE_END, start);
    this.#take(chunk.subarray(start, end < 0 ? chunk.length : end), end >= 0);
    if (this.#verdict !== null) this.#line = [];
  }

  finish(): UploadFacts['firstLine'] {
    return this.#verdict ?? (this.#length === 0 ? 'blank' : parse(this.#line));
  }

  #take(piece: Buffer, isComplete: boolean): void {
    if (this.#length === 0 && piece[0] !== BRACE) {
      this.#verdict = 'other';
      return;
    }
    this.#length += piece.length;
    if (this.#length > this.#maxBytes) {
      this.#verdict = 'jsonl';
      return;
    }
    // A copy, so that a small piece does not keep a large chunk in memory.
    this.#line.push(Buffer.from(piece));
    if (isComplete) this.#verdict = parse(this.#line);
  }

  /** Number of leading bytes that are white space, or a byte order mark at the beginning of the file. */
  #blanksBefore(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && (isBlank(chunk[at]) || chunk[at] === BOM[this.#position + at]))
      at++;
    return at;
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

function parse(line: readonly Buffer[]): 'jsonl' | 'other' {
  const bytes = Buffer.concat(line);
  const fault = faultOf(bytes);
  if (fault !== null) return fault === 'invalid' ? 'other' : 'jsonl';
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isJsonObject(value) ? 'jsonl' : 'other';
  } catch {
    return 'other';
  }
}
