import type { PrefixChain } from '../plan/prefix-chain';
import { ContentHasher } from './content-hash';
import { endpointRule } from './endpoints';
import type { ScannedRequest, ScanRules } from './scan-sink';
import {
  isField,
  MAX_URL_BYTES,
  RECORD,
  RECORD_WORDS,
  type IndexedLines,
  type IndexRules,
} from './line-index';

/**
 * What an index needs to know of the rules. Null if it cannot read requests of the endpoint: they name recordings, whose
 * rules need values.
 */
export function indexRules(rules: ScanRules, seed: number): IndexRules | null {
  const { required, namesAudio, countsInputs, answersAudio } = endpointRule(rules.endpoint);
  const url = Buffer.from(`"${rules.endpoint}"`);
  const fields = required.filter(isField);
  if (namesAudio || fields.length < required.length || url.length > MAX_URL_BYTES) return null;
  const { maxLineBytes, json } = rules;
  return { url, required: fields, countsInputs, answersAudio, maxLineBytes, json, seed };
}

/** The lines that an index has read, and where they are in the file. */
interface ReadLines {
  readonly found: IndexedLines;
  readonly text: Buffer;
  /** Of the first byte of the text, in the file. */
  readonly offset: number;
}

/** A request of the usual shape and without a fault of its own. It is valid until the next one is taken. */
export class PlainRequest implements ScannedRequest {
  readonly #contents = new ContentHasher();
  /** The prefix hashes of the lines that are read, by the numbers of their system prompts. */
  readonly #hashes = new Map<number, number>();
  /** The models of these lines, by the number of the first line with each. */
  #models: string[] = [];
  #lines: ReadLines | null = null;
  #text: Buffer = Buffer.alloc(0);
  #textOffset = 0;
  #at = 0;
  #modelLine = -1;
  readonly fileId = null;
  /** The records of the lines, and where the hash of the id is in them. */
  words: Uint32Array = new Uint32Array(0);
  idHashAt = 0;
  offset = 0;
  length = 0;
  prefixHash = 0;
  model = '';
  inputs = 0;
  readonly chain: { -readonly [name in keyof PrefixChain]: PrefixChain[name] } = {
    blocks: this.words,
    from: 0,
    length: 0,
  };

  /** Begins with other lines. */
  begin(lines: ReadLines): void {
    this.#lines = lines;
    this.#text = lines.text;
    this.#textOffset = lines.offset;
    this.words = lines.found.records;
    this.chain.blocks = lines.found.chains;
    this.#hashes.clear();
    this.#models = [];
    this.#modelLine = -1;
  }

  /** Takes a line of the usual shape. */
  take(line: number): this {
    const { words, chain } = this;
    const at = line * RECORD_WORDS;
    this.#at = at;
    this.idHashAt = at + RECORD.idHash;
    const start = this.#word(RECORD.start);
    this.offset = this.#textOffset + start;
    this.length = this.#word(RECORD.end) - start;
    this.inputs = this.#word(RECORD.inputs);
    chain.from = words[at + RECORD.chainAt] ?? 0;
    chain.length = words[at + RECORD.chainLength] ?? 0;
    const isHashed = this.#word(RECORD.systemEnd) === 0;
    this.prefixHash = isHashed ? this.#word(RECORD.prefixHash) : this.#hashOfSystem();
    const modelLine = this.#word(RECORD.modelLine);
    if (modelLine !== this.#modelLine) this.#takeModel(modelLine);
    return this;
  }

  customId(): string {
    return this.#text.toString('utf8', this.#word(RECORD.idStart), this.#word(RECORD.idEnd));
  }

  #takeModel(line: number): void {
    const [from, to] = [this.#word(RECORD.modelStart), this.#word(RECORD.modelEnd)];
    this.model = this.#models[line] ??= this.#text.toString('utf8', from, to);
    this.#modelLine = line;
  }

  #hashOfSystem(): number {
    const equal = this.#word(RECORD.systemEqual);
    const known = this.#hashes.get(equal);
    if (known !== undefined) return known;
    const range = [this.#word(RECORD.systemStart), this.#word(RECORD.systemEnd)] as const;
    const digest = this.#lines?.found.digestOf(range) ?? 0;
    const hash = this.#contents.hash(this.#text, range, digest);
    this.#hashes.set(equal, hash);
    return hash;
  }

  #word(word: number): number {
    return this.words[this.#at + word] ?? 0;
  }
}
