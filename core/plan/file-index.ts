import type { Crc32 } from '../journal/crc32';
import type { ScannedRequest, ScanRules, ScanSink } from '../openai/scan-sink';

/**
 * The index of a file: all that a scan of it without a fault tells ({@link ScannedRequest}), so that ingestion need not
 * read the file (docs/design/journal.md#index-of-a-file).
 */
const MAGIC = 'NSI1';
const WORD_BYTES = 4;
const MAGIC_WORDS = MAGIC.length / WORD_BYTES;
/** The magic, and how many words the requests have. */
const START_WORDS = MAGIC_WORDS + 1;
/** Of a request: gap, length, prefix hash, and numbers. Its chain follows. */
const FIXED_WORDS = 4;
const MODEL_BITS = 16;
const MODEL_MASK = 2 ** MODEL_BITS - 1;

/** A smaller file is scanned in less time than its index takes to be written. */
export const MIN_INDEXED_BYTES = 4 * 1024 * 1024;
/** For half a million requests with short prompts, or 100,000 of 4 KB. */
const MAX_WORDS = 2 * 1024 * 1024;

/** What an index was made with. It is of use for a scan with equal terms only. */
export interface IndexTerms {
  /** The version of the product: another one may check lines in another way. */
  readonly release: string;
  readonly rules: ScanRules;
  /** Size of the file. */
  readonly bytes: number;
}

/** The JSON at the end of an index. */
interface StoredTerms extends IndexTerms {
  readonly version: 1;
  readonly requests: number;
  /** By number. */
  readonly models: readonly string[];
}

/** Collects the requests of one file at a time, in 8 MiB that it keeps: the system provides what is used of them. */
export class FileIndexBuilder {
  readonly #words = new Uint32Array(MAX_WORDS);
  readonly #bytes = Buffer.from(this.#words.buffer);
  readonly #models = new Map<string, number>();
  #length = START_WORDS;
  #requests = 0;
  #end = 0;

  /** Begins with another file. What was built must not be used any more. */
  clear(): void {
    this.#models.clear();
    this.#length = START_WORDS;
    this.#requests = 0;
    this.#end = 0;
  }

  /** Takes requests in the order of the file. @throws RangeError if there are too many */
  add({ offset, length, prefixHash, model, chain }: ScannedRequest): void {
    const words = this.#words;
    const at = this.#length;
    this.#length = at + FIXED_WORDS + chain.length;
    if (this.#length > words.length) throw new RangeError('the file has too many requests');
    words[at] = offset - this.#end;
    words[at + 1] = length;
    words[at + 2] = prefixHash;
    words[at + 3] = this.#numberOf(model) | (chain.length << MODEL_BITS);
    for (let i = 0; i < chain.length; i++) {
      words[at + FIXED_WORDS + i] = chain.blocks[chain.from + i] ?? 0;
    }
    this.#end = offset + length;
    this.#requests++;
  }

  /** The index, valid until `clear`. @throws RangeError if it is too large */
  build({ release, rules, bytes }: IndexTerms, crc32: Crc32): Buffer {
    const index = this.#bytes;
    const models = [...this.#models.keys()];
    const requests = this.#requests;
    const terms: StoredTerms = { version: 1, release, rules, bytes, requests, models };
    const json = JSON.stringify(terms);
    index.write(MAGIC, 0, 'latin1');
    this.#words[MAGIC_WORDS] = this.#length - START_WORDS;
    const at = this.#length * WORD_BYTES;
    const end = at + Buffer.byteLength(json);
    index.write(json, at);
    index.writeUInt32LE(crc32(index.subarray(0, end)), end);
    return index.subarray(0, end + WORD_BYTES);
  }

  #numberOf(model: string): number {
    const number = this.#models.get(model) ?? this.#models.size;
    this.#models.set(model, number);
    return number;
  }
}

/** An index that was read. */
class FileIndex {
  /** Requests in the file. */
  readonly requests: number;
  readonly #models: readonly string[];
  readonly #words: Uint32Array;
  #at = 0;
  #end = 0;

  constructor({ requests, models }: Pick<StoredTerms, 'requests' | 'models'>, words: Uint32Array) {
    this.requests = requests;
    this.#models = models;
    this.#words = words;
  }

  /** Tells the sink up to `count` further requests, as a scan of the file would. Returns whether there are more. */
  tellSome(sink: Pick<ScanSink, 'request'>, count: number): boolean {
    const words = this.#words;
    const chain = { blocks: words, from: 0, length: 0 };
    const request = { offset: 0, length: 0, prefixHash: 0, model: '', fileId: null, chain };
    for (let i = 0; i < count && this.#at < words.length; i++) {
      const at = this.#at;
      const numbers = words[at + 3] ?? 0;
      request.offset = this.#end + (words[at] ?? 0);
      request.length = words[at + 1] ?? 0;
      request.prefixHash = words[at + 2] ?? 0;
      request.model = this.#models[numbers & MODEL_MASK] ?? '';
      chain.from = at + FIXED_WORDS;
      chain.length = numbers >>> MODEL_BITS;
      this.#at = chain.from + chain.length;
      this.#end = request.offset + request.length;
      sink.request(request);
    }
    return this.#at < words.length;
  }
}

/** Reads an index. Null if it was made with other terms, in another format, or is damaged. */
export function readFileIndex(index: Buffer, terms: IndexTerms, crc32: Crc32): FileIndex | null {
  const end = index.length - WORD_BYTES;
  const start = START_WORDS * WORD_BYTES;
  if (end < start || index.toString('latin1', 0, MAGIC.length) !== MAGIC) return null;
  if (crc32(index.subarray(0, end)) !== index.readUInt32LE(end)) return null;
  const termsAt = start + index.readUInt32LE(MAGIC.length) * WORD_BYTES;
  const stored = JSON.parse(index.toString('utf8', termsAt, end)) as StoredTerms;
  if (stored.version !== 1 || !areEqual(stored, terms)) return null;
  return new FileIndex(stored, wordsOf(index.subarray(start, termsAt)));
}

function areEqual(made: IndexTerms, wanted: IndexTerms): boolean {
  const text = ({ release, rules, bytes }: IndexTerms): string =>
    JSON.stringify([release, rules, bytes]);
  return text(made) === text(wanted);
}

/** A copy only if the bytes do not lie at a multiple of four. */
function wordsOf(bytes: Buffer): Uint32Array {
  const { buffer, byteOffset, length } = bytes;
  return byteOffset % WORD_BYTES === 0
    ? new Uint32Array(buffer, byteOffset, length / WORD_BYTES)
    : new Uint32Array(new Uint8Array(bytes).buffer);
}
