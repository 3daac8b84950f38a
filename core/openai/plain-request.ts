import { createContentHasher } from './content-hash';
import { endpointRule, type EndpointRule } from './endpoints';
import { QUOTE, skipBlanks } from './json-bytes';
import type { JsonLimits } from './json-check';
import type { CheckedLine, LineRules } from './line-check';
import { FIELD, type Field, type LineIndex } from './line-index';
import type { RawLine } from './line-splitter';

/** A request of the usual shape and without a fault of its own. It is valid until the next line is read. */
export interface PlainRequest extends CheckedLine {
  readonly customId: string;
  readonly model: string;
  readonly body: PresentMembers;
  /** As `createPrefixHasher` computes it. */
  prefixHash(): number;
}

/** The members of a body that can have a prompt: true if they are neither missing nor null. */
export type PresentMembers = Readonly<
  Record<'tools' | 'instructions' | 'messages' | 'input' | 'prompt', boolean | null>
>;

/** Reads a line; null if it must be parsed. */
export type PlainReader = (line: RawLine) => PlainRequest | null;

/** The required members of all endpoints without recordings. */
const REQUIRED: Readonly<Record<string, Field>> = {
  messages: FIELD.messages,
  input: FIELD.input,
  prompt: FIELD.prompt,
  images: FIELD.images,
  voice: FIELD.voice,
};
const MAX_CUSTOM_ID_BYTES = 512;
const MAX_MODEL_BYTES = 256;
/** Bytes of a string's quotes. */
const QUOTES = 2;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const OPEN_BRACKET = 0x5b;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

/**
 * A reader that finds the fields of a request without parsing its line. It returns null for every line that the rules
 * do not accept, and for some that they do. Null if requests of the endpoint name recordings: their rules need values.
 */
export function createPlainReader(
  index: LineIndex,
  rules: LineRules & { readonly json: JsonLimits },
): PlainReader | null {
  const rule = endpointRule(rules.endpoint);
  const required = rule.required.map((name) => REQUIRED[name]);
  if (rule.namesAudio || !required.every((field) => field !== undefined)) return null;
  const shape = { rule, required, url: Buffer.from(`"${rules.endpoint}"`) };
  const request = new IndexedRequest(index, shape);
  return (line) => {
    if (line.encoding === 'invalid') return null;
    if (!index.read(line.bytes, [line.start, line.end], rules.json)) return null;
    return request.take(line) ? request : null;
  };
}

/** What requests of an endpoint look like. */
interface Shape {
  readonly rule: EndpointRule;
  readonly required: readonly Field[];
  /** In quotes. */
  readonly url: Buffer;
}

class IndexedRequest implements PlainRequest {
  readonly #index: LineIndex;
  readonly #shape: Shape;
  readonly #contentHash = createContentHasher();
  /** The latest model, in quotes. Most lines have the same one. */
  #modelJson = Buffer.alloc(0);
  #line: Pick<RawLine, 'bytes' | 'start'> = { bytes: this.#modelJson, start: 0 };
  readonly fileId = null;
  readonly body: Record<keyof PresentMembers, boolean | null> = {
    tools: null,
    instructions: null,
    messages: null,
    input: null,
    prompt: null,
  };
  customId = '';
  model = '';
  inputs = 0;

  constructor(index: LineIndex, shape: Shape) {
    this.#index = index;
    this.#shape = shape;
  }

  /** False if the line has a fault, or must be parsed to see that it has none. */
  take(line: RawLine): boolean {
    this.#line = line;
    if (!this.#isFaultless()) return false;
    const [idStart, idEnd] = this.#rangeOf(FIELD.customId);
    const encoding = line.encoding === 'ascii' ? 'latin1' : 'utf8';
    this.customId = line.bytes.toString(encoding, idStart + 1, idEnd - 1);
    this.#takeModel();
    this.inputs = this.#shape.rule.countsInputs ? this.#countInputs() : 0;
    this.#takeMembers();
    return true;
  }

  prefixHash(): number {
    const hasText = this.#firstByteOf(FIELD.instructions) === QUOTE;
    const second = hasText ? FIELD.instructions : FIELD.inputSystem;
    const field = this.#has(FIELD.messagesSystem) ? FIELD.messagesSystem : second;
    if (!this.#has(field)) return 0;
    return this.#contentHash(this.#line.bytes, this.#rangeOf(field), this.#index.digestOf(field));
  }

  /** One by one: a loop over their names takes longer. */
  #takeMembers(): void {
    const { body } = this;
    body.tools = this.#isPresent(FIELD.tools) || null;
    body.instructions = this.#isPresent(FIELD.instructions) || null;
    body.messages = this.#isPresent(FIELD.messages) || null;
    body.input = this.#isPresent(FIELD.input) || null;
    body.prompt = this.#isPresent(FIELD.prompt) || null;
  }

  #isFaultless(): boolean {
    const { rule, required, url } = this.#shape;
    return (
      this.#isText(FIELD.url, url) &&
      this.#isWithin(FIELD.customId, MAX_CUSTOM_ID_BYTES) &&
      this.#isWithin(FIELD.model, MAX_MODEL_BYTES) &&
      required.every((field) => this.#isPresent(field)) &&
      this.#firstByteOf(FIELD.stream) !== LETTER_T &&
      !(rule.answersAudio && this.#isPresent(FIELD.streamFormat))
    );
  }

  /** Whether a string has 1 to `maxBytes` bytes. It has no more characters than those. */
  #isWithin(field: Field, maxBytes: number): boolean {
    const [start, end] = this.#rangeOf(field);
    const length = end - start - QUOTES;
    return length > 0 && length <= maxBytes;
  }

  #takeModel(): void {
    if (this.#isText(FIELD.model, this.#modelJson)) return;
    const [start, end] = this.#rangeOf(FIELD.model);
    this.#modelJson = Buffer.from(this.#line.bytes.subarray(start, end));
    this.model = this.#modelJson.toString('utf8', 1, end - start - 1);
  }

  /** A text or an array of tokens is one input; an array of these counts each element. */
  #countInputs(): number {
    if (this.#firstByteOf(FIELD.input) !== OPEN_BRACKET) return 1;
    const { bytes } = this.#line;
    const [start] = this.#rangeOf(FIELD.input);
    const first = bytes[skipBlanks(bytes, start + 1)] ?? 0;
    return first === MINUS || (first >= ZERO && first <= NINE) ? 1 : this.#index.inputCount;
  }

  #has(field: Field): boolean {
    return this.#index.endOf(field) > 0;
  }

  /** Whether the field is there and not null. */
  #isPresent(field: Field): boolean {
    return this.#has(field) && this.#firstByteOf(field) !== LETTER_N;
  }

  /** Of a field's value; 0 if it is absent. */
  #firstByteOf(field: Field): number {
    if (!this.#has(field)) return 0;
    return this.#line.bytes[this.#line.start + this.#index.startOf(field)] ?? 0;
  }

  /** Whether a field is this JSON text. A native comparison costs as much as a loop over a hundred bytes. */
  #isText(field: Field, json: Buffer): boolean {
    const [start, end] = this.#rangeOf(field);
    if (end - start !== json.length) return false;
    const { bytes } = this.#line;
    for (let i = 0; i < json.length; i++) if (bytes[start + i] !== json[i]) return false;
    return true;
  }

  /** Positions in the bytes of the line. */
  #rangeOf(field: Field): [number, number] {
    const { start } = this.#line;
    return [start + this.#index.startOf(field), start + this.#index.endOf(field)];
  }
}
