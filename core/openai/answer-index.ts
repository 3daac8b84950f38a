import { NO_USAGE, type Usage } from '../batch/counts';
import { ANSWER_INDEX_PROGRAM } from './answer-index-program';
import { startProgram } from '../programs/start-program';
import type { EmbeddedAnswer } from './embedded-answer';

/** Embeds answers of the usual shape (docs/design/execution.md#index-of-an-answer). */
export interface AnswerIndex {
  /** Null for an answer that it does not read: it is not JSON, is long, or has an unusual shape. */
  embed(status: number, body: Buffer): EmbeddedAnswer | null;
}

/** Where a count goes. Members of the same slot are other names of the same thing. */
const SLOT = {
  input: 0,
  cached: 1,
  output: 2,
  reasoning: 3,
  total: 4,
  inputDetails: 5,
  outputDetails: 6,
  model: 7,
  usage: 8,
} as const;

/** The table of names that the program compares with, in its order: those of an answer, of its usage, and of the details. */
const NAMES: readonly (readonly [name: string, slot: number])[] = [
  ['model', SLOT.model],
  ['usage', SLOT.usage],
  ['prompt_tokens', SLOT.input],
  ['input_tokens', SLOT.input],
  ['completion_tokens', SLOT.output],
  ['output_tokens', SLOT.output],
  ['total_tokens', SLOT.total],
  ['prompt_tokens_details', SLOT.inputDetails],
  ['input_tokens_details', SLOT.inputDetails],
  ['completion_tokens_details', SLOT.outputDetails],
  ['output_tokens_details', SLOT.outputDetails],
  ['cached_tokens', SLOT.cached],
  ['reasoning_tokens', SLOT.reasoning],
];
const NAME_BYTES = 64;
const MASK_AT = 32;
const SLOT_AT = 36;

/** Longer answers are embedded byte by byte, so that the memory of the program is bounded. */
const MAX_BYTES = 1 << 20;
/** Words of the record: two of the model, then the counts. */
const RECORD_WORDS = 7;
const FIRST_COUNT = 2;

/** Bits of what `indexAnswer` returns. */
const PLAIN = 2;
const SAME_MODEL = 4;

/** The exports of core/assembly/answer-index.ts. */
interface Program {
  readonly memory: { readonly buffer: ArrayBuffer };
  namesStart(): number;
  recordStart(): number;
  textStart(): number;
  copyStart(): number;
  indexAnswer(length: number): number;
  copyAscii(length: number): number;
}

/**
 * An index that reads 16 bytes at a time by WebAssembly; null if the machine or the settings of Node do not allow that.
 * Its memory is of a fixed size, and what it keeps between answers is the latest model.
 */
export function createAnswerIndex(): AnswerIndex | null {
  const program = startProgram<Program>(ANSWER_INDEX_PROGRAM);
  return program && new WasmAnswerIndex(program);
}

class WasmAnswerIndex implements AnswerIndex {
  readonly #program: Program;
  readonly #memory: Buffer;
  readonly #record: Int32Array;
  readonly #textStart: number;
  readonly #copyStart: number;
  /** The model that the program compares with. */
  #model = '';

  constructor(program: Program) {
    this.#program = program;
    this.#textStart = program.textStart();
    this.#copyStart = program.copyStart();
    this.#memory = Buffer.from(program.memory.buffer);
    this.#record = new Int32Array(program.memory.buffer, program.recordStart(), RECORD_WORDS);
    NAMES.forEach(([name, slot], index) => {
      const at = program.namesStart() + index * NAME_BYTES;
      const text = `"${name}"`;
      this.#memory.write(text, at, 'latin1');
      this.#memory.writeUInt32LE(2 ** text.length - 1, at + MASK_AT);
      this.#memory.writeUInt32LE(slot, at + SLOT_AT);
    });
  }

  embed(status: number, body: Buffer): EmbeddedAnswer | null {
    if (body.length > MAX_BYTES) return null;
    this.#memory.set(body, this.#textStart);
    const found = this.#program.indexAnswer(body.length);
    if (found === 0) return null;
    // In any case, because the program takes it for known from now on.
    if ((found & SAME_MODEL) === 0) this.#model = this.#readModel();
    const json = (found & PLAIN) === 0 ? this.#asciiCopy(body.length) : body;
    if (json === null) return null;
    if (status < 200 || status > 299) return { ok: false, json, usage: NO_USAGE, model: null };
    const model = this.#record[1] === 0 ? null : this.#model;
    return { ok: true, json, usage: this.#usage(), model };
  }

  #readModel(): string {
    const [start = 0, end = 0] = this.#record;
    return this.#memory.toString('latin1', this.#textStart + start, this.#textStart + end);
  }

  /** Null if the answer is not UTF-8. */
  #asciiCopy(length: number): Buffer | null {
    const bytes = this.#program.copyAscii(length);
    if (bytes === 0) return null;
    const json = Buffer.allocUnsafe(bytes);
    json.set(this.#memory.subarray(this.#copyStart, this.#copyStart + bytes));
    return json;
  }

  #usage(): Usage {
    const inputTokens = this.#count(SLOT.input);
    const outputTokens = this.#count(SLOT.output);
    const total = this.#record[FIRST_COUNT + SLOT.total] ?? 0;
    return {
      inputTokens,
      cachedTokens: this.#count(SLOT.cached),
      outputTokens,
      reasoningTokens: this.#count(SLOT.reasoning),
      totalTokens: total < 0 ? inputTokens + outputTokens : total,
    };
  }

  /** An absent count is negative, and counts as 0. */
  #count(slot: number): number {
    return Math.max(0, this.#record[FIRST_COUNT + slot] ?? 0);
  }
}
