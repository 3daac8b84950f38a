import type { JsonLimits } from './json-check';
import { LINE_INDEX_PROGRAM } from './line-index-program';
import { startProgram } from '../programs/start-program';

/** Reads the fields of requests of the usual shape without parsing their lines (docs/design/batch-path.md#index-of-a-line). */
export interface LineIndex {
  /**
   * Reads the lines of `text`, which has at most {@link MAX_TEXT_BYTES}, or is a single line. Stops after a number of lines of
   * another shape, each of which costs its caller much more time. Null if the text is not UTF-8, or there is no memory for it.
   *
   * @param isUtf8 checks the copy of the text that the program reads, which is nearer to the processor than the text; not
   *   needed for a text that is known to be UTF-8
   */
  read(
    text: Buffer,
    rules: IndexRules,
    isUtf8?: (bytes: Uint8Array) => boolean,
  ): IndexedLines | null;
}

/** Texts of more than one line can have this many bytes. */
export const MAX_TEXT_BYTES = 1024 * 1024;

/** What lines must be like. */
export interface IndexRules {
  /** In quotes, at most {@link MAX_URL_BYTES}. */
  readonly url: Buffer;
  /** Members that must neither be missing nor null. */
  readonly required: readonly Field[];
  readonly countsInputs: boolean;
  readonly answersAudio: boolean;
  readonly maxLineBytes: number;
  readonly json: JsonLimits;
  /** Of the hashes of ids. */
  readonly seed: number;
}

/** Bytes of a URL in its place in the program, with quotes. */
export const MAX_URL_BYTES = 512;

/** What the index found. It is valid until the next call of any scan. */
export interface IndexedLines {
  readonly count: number;
  /** Bytes of these lines, with their line feeds. */
  readonly bytes: number;
  /** {@link RECORD_WORDS} for each line, see {@link RECORD}. Positions count from the start of the text. */
  readonly records: Uint32Array;
  /** The blocks of all chains. */
  readonly chains: Uint32Array;
  /** 32 bits that depend on all bytes of a part of the text. They only serve to find equal parts. */
  digestOf(range: readonly [number, number]): number;
}

/** The words of a record (core/assembly/line-index.ts). */
export const RECORD = {
  start: 0,
  /** Without the line end. For a line that must be parsed, the position of its line feed. */
  end: 1,
  /** One of {@link SHAPE}. The words below have a meaning for the usual one only. */
  shape: 2,
  /** Between the quotes. */
  idStart: 3,
  idEnd: 4,
  /** Three words, see core/openai/id-hash.ts. */
  idHash: 5,
  /** The number of a line with the same model: the line itself or an earlier one. */
  modelLine: 8,
  modelStart: 9,
  modelEnd: 10,
  /** The JSON text of the system prompt; the end is 0 if the prefix hash is known without it. */
  systemStart: 11,
  systemEnd: 12,
  /** Lines with the same number here have the same system prompt. */
  systemEqual: 13,
  prefixHash: 14,
  inputs: 15,
  /** The number of the first block of the chain, and how many there are. */
  chainAt: 16,
  chainLength: 17,
} as const;
export const RECORD_WORDS = 18;

/** Shapes of lines. */
export const SHAPE = { mustBeParsed: 0, usual: 1, blank: 2 } as const;

/** The numbers of members in the program. */
const FIELDS = { messages: 5, input: 6, prompt: 7, images: 12, voice: 13 } as const;

/** A member that an endpoint can require. */
export type Field = keyof typeof FIELDS;

/** Whether a member can be required of the lines that an index reads. */
export function isField(name: string): name is Field {
  return Object.hasOwn(FIELDS, name);
}

/** The table of names that the program compares with: members by their field, then values. */
const NAMES = [
  ...['custom_id', 'method', 'url', 'body'],
  ...['model', 'messages', 'input', 'prompt', 'stream', 'tools'],
  ...['stream_format', 'instructions', 'images', 'voice'],
  ...['role', 'content'],
  ...['system', 'developer', 'POST'],
];
const NAME_BYTES = 32;
const MASK_AT = 16;
const MAX_LIMIT = 2 ** 31 - 1;
const PAGE_BYTES = 64 * 1024;
/** The program reads up to 64 bytes at once. */
const MARGIN_BYTES = 256;
/** Bytes of lines to be parsed in one call: even if they are tiny and invalid, that takes 0.1 s. */
const MAX_ODD_BYTES = 64 * 1024;
const WARM_CALLS = 8;

/** The exports of core/assembly/line-index.ts. */
interface Program {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  namesStart(): number;
  urlStart(): number;
  recordsStart(): number;
  chainsStart(): number;
  textStart(): number;
  stopPosition(): number;
  digestOf(from: number, to: number): number;
  setRules(urlBytes: number, required: number, countsInputs: boolean, answersAudio: boolean): void;
  indexLines(
    length: number,
    seed: number,
    maxLineBytes: number,
    maxDepth: number,
    maxTokens: number,
    maxOddBytes: number,
  ): number;
}

/**
 * An index that reads 64 bytes at a time by WebAssembly; null if the machine or the settings of Node do not allow that.
 * It keeps no state between calls, so all scanners of a process can share one. Its memory grows to the longest line.
 */
export function createLineIndex(): LineIndex | null {
  const program = startProgram<Program>(LINE_INDEX_PROGRAM);
  if (program === null) return null;
  const index = new WasmLineIndex(program);
  warmUp(index);
  return index;
}

/** Node compiles a program again, for speed, after it has run for some time. This takes 5 ms. */
function warmUp(index: LineIndex): void {
  const url = Buffer.from('"/"');
  const content = 'A line of the usual length.\\n '.repeat(140);
  const messages = `[{"role":"system","content":"${content}"},{"role":"user","content":"a"}]`;
  const line = `{"custom_id":"1","method":"POST","url":"/","body":{"model":"m","messages":${messages}}}\n`;
  const text = Buffer.from(line.repeat(Math.floor(MAX_TEXT_BYTES / line.length)));
  const rules: IndexRules = {
    ...{ url, required: ['messages'], countsInputs: false, answersAudio: false },
    ...{ maxLineBytes: MAX_TEXT_BYTES, json: { maxDepth: 10, maxTokens: 10_000 }, seed: 1 },
  };
  for (let i = 0; i < WARM_CALLS; i++) index.read(text, rules);
}

class WasmLineIndex implements LineIndex {
  readonly #program: Program;
  readonly #textStart: number;
  #memory: Buffer;
  #records: Uint32Array;
  #chains: Uint32Array;

  constructor(program: Program) {
    this.#program = program;
    this.#textStart = program.textStart();
    [this.#memory, this.#records, this.#chains] = viewsOf(program);
    NAMES.forEach((name, index) => {
      const at = program.namesStart() + index * NAME_BYTES;
      const text = `"${name}"`;
      this.#memory.write(text, at, 'latin1');
      this.#memory.writeUInt32LE(2 ** text.length - 1, at + MASK_AT);
    });
  }

  read(
    text: Buffer,
    rules: IndexRules,
    isUtf8?: (bytes: Uint8Array) => boolean,
  ): IndexedLines | null {
    if (!this.#reserve(text.length)) return null;
    const program = this.#program;
    const start = this.#textStart;
    this.#memory.set(text, start);
    if (isUtf8?.(this.#memory.subarray(start, start + text.length)) === false) return null;
    this.#memory.set(rules.url, program.urlStart());
    const required = rules.required.reduce((bits, field) => bits | (1 << FIELDS[field]), 0);
    program.setRules(rules.url.length, required, rules.countsInputs, rules.answersAudio);
    const count = program.indexLines(
      text.length,
      rules.seed,
      Math.min(rules.maxLineBytes, MAX_LIMIT),
      Math.min(rules.json.maxDepth, MAX_LIMIT),
      Math.min(rules.json.maxTokens, MAX_LIMIT),
      MAX_ODD_BYTES,
    );
    const bytes = program.stopPosition();
    const digestOf = ([from, to]: readonly [number, number]) => program.digestOf(from, to) >>> 0;
    return { count, bytes, records: this.#records, chains: this.#chains, digestOf };
  }

  /** False if the process cannot have that much memory. */
  #reserve(bytes: number): boolean {
    const missing = this.#textStart + bytes + MARGIN_BYTES - this.#memory.length;
    if (missing <= 0) return true;
    try {
      this.#program.memory.grow(Math.ceil(missing / PAGE_BYTES));
    } catch {
      return false;
    }
    [this.#memory, this.#records, this.#chains] = viewsOf(this.#program);
    return true;
  }
}

/** The memory of a program, and its parts with records and chains. */
function viewsOf(program: Program): [Buffer, Uint32Array, Uint32Array] {
  const { buffer } = program.memory;
  const [records, chains, text] = [
    program.recordsStart(),
    program.chainsStart(),
    program.textStart(),
  ];
  return [
    Buffer.from(buffer),
    new Uint32Array(buffer, records, (chains - records) / 4),
    new Uint32Array(buffer, chains, (text - chains) / 4),
  ];
}
