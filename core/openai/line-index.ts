import { NO_JSON_LIMITS, type JsonLimits } from './json-check';
import { LINE_INDEX_PROGRAM } from './line-index-program';

/** Where the fields of a request are in its line, for lines of the usual shape (docs/design/batch-path.md#index-of-a-line). */
export interface LineIndex {
  /**
   * Reads the line `[start, end)` of `bytes`, which is UTF-8. False if it must be parsed to know more: it is not JSON,
   * exceeds a limit, or has an unusual shape. Otherwise positions are known until the next call.
   */
  read(bytes: Buffer, [start, end]: readonly [number, number], limits: JsonLimits): boolean;
  /** Forgets the bytes of the latest calls. Until then they must not change: all of them are copied in the first call. */
  release(): void;
  /** First byte of a field's value, counted from the start of the line. */
  startOf(field: Field): number;
  /** Position after it; 0 if the field is absent. */
  endOf(field: Field): number;
  /** 32 bits that depend on all bytes of a field. They only serve to find equal values. */
  digestOf(field: Field): number;
  /** Elements of `input`, if that is an array. */
  readonly inputCount: number;
}

/** The number of each field in the record of the program. */
export const FIELD = {
  customId: 0,
  url: 2,
  model: 4,
  messages: 5,
  input: 6,
  prompt: 7,
  stream: 8,
  tools: 9,
  streamFormat: 10,
  instructions: 11,
  images: 12,
  voice: 13,
  /** Content of the first system or developer message in `messages`: a string or an array. */
  messagesSystem: 16,
  /** The same in `input`. */
  inputSystem: 17,
} as const;

/** One of {@link FIELD}. */
export type Field = (typeof FIELD)[keyof typeof FIELD];

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
const FIELDS = 18;
const FIELD_BYTES = 8;
const MAX_LIMIT = 2 ** 31 - 1;
const PAGE_BYTES = 64 * 1024;
/** The program reads up to 16 bytes at once. */
const MARGIN_BYTES = 32;
const WARM_LINES = 1_000;
const WARM_LINE_BYTES = 4_096;

/** The exports of core/assembly/line-index.ts. */
interface Program {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  namesStart(): number;
  recordStart(): number;
  textStart(): number;
  digestOf(field: number): number;
  indexLine(from: number, length: number, maxDepth: number, maxTokens: number): number;
}

/** The part of the global that is used. It is undefined if Node runs with `--jitless`. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

/**
 * An index that reads 16 bytes at a time by WebAssembly; null if the machine or the settings of Node do not allow that.
 * It keeps no state between lines, so all scanners of a process can share one. Its memory grows to the longest line.
 */
export function createLineIndex(): LineIndex | null {
  try {
    const module = new WebAssembly.Module(Buffer.from(LINE_INDEX_PROGRAM, 'base64'));
    const index = new WasmLineIndex(new WebAssembly.Instance(module).exports as Program);
    warmUp(index);
    return index;
  } catch {
    return null;
  }
}

/** Node compiles a program again, for speed, after it has run for some time. This takes 5 ms. */
function warmUp(index: LineIndex): void {
  const content = 'A line of the usual length. '.repeat(WARM_LINE_BYTES / 28);
  const text = `{"custom_id":"1","body":{"model":"m","messages":[{"role":"system","content":"${content}"}]}}`;
  const line = Buffer.from(text);
  for (let i = 0; i < WARM_LINES; i++) index.read(line, [0, line.length], NO_JSON_LIMITS);
  index.release();
}

class WasmLineIndex implements LineIndex {
  readonly #program: Program;
  readonly #textStart: number;
  /** What is in the memory of the program. */
  #loaded: Buffer | null = null;
  #memory: Buffer;
  #record: DataView;

  constructor(program: Program) {
    this.#program = program;
    this.#textStart = program.textStart();
    this.#memory = Buffer.from(program.memory.buffer);
    this.#record = this.#viewOfRecord();
    NAMES.forEach((name, index) => {
      const at = program.namesStart() + index * NAME_BYTES;
      const text = `"${name}"`;
      this.#memory.write(text, at, 'latin1');
      this.#memory.writeUInt32LE(2 ** text.length - 1, at + MASK_AT);
    });
  }

  read(bytes: Buffer, [start, end]: readonly [number, number], limits: JsonLimits): boolean {
    if (bytes !== this.#loaded) {
      if (!this.#reserve(bytes.length)) return false;
      this.#memory.set(bytes, this.#textStart);
      this.#loaded = bytes;
    }
    const maxDepth = Math.min(limits.maxDepth, MAX_LIMIT);
    const maxTokens = Math.min(limits.maxTokens, MAX_LIMIT);
    return this.#program.indexLine(start, end - start, maxDepth, maxTokens) === 1;
  }

  release(): void {
    this.#loaded = null;
  }

  startOf(field: Field): number {
    return this.#record.getUint32(field * FIELD_BYTES, true);
  }

  endOf(field: Field): number {
    return this.#record.getUint32(field * FIELD_BYTES + 4, true);
  }

  digestOf(field: Field): number {
    return this.#program.digestOf(field) >>> 0;
  }

  get inputCount(): number {
    return this.#record.getUint32(FIELDS * FIELD_BYTES, true);
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
    this.#memory = Buffer.from(this.#program.memory.buffer);
    this.#record = this.#viewOfRecord();
    return true;
  }

  #viewOfRecord(): DataView {
    const { memory, recordStart } = this.#program;
    return new DataView(memory.buffer, recordStart());
  }
}
