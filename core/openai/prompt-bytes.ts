import { COMMA, OPEN_BRACKET, QUOTE, skipBlanks, stringEnd, valueEnd } from './json-bytes';
import { isKey } from './json-keys';

/** Where the prompt of a request is in its line. It may be reused for the next line. */
export interface PromptBytes {
  readonly bytes: Buffer;
  /** Byte ranges `[from, to)` of `bytes` as pairs `from, to`, in the order in which a model reads them. */
  readonly ranges: readonly number[];
}

/** The bytes of a line: `[start, end)` of `bytes`. */
interface LineBytes {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

type Members = Readonly<Record<string, unknown>>;

/** Longer arrays are not remembered. */
const MAX_REPEATED = 64 * 1024;
const BODY = Buffer.from('body');
/** Members that come before the prompt of a request, whatever their place in the body. */
const LEADING = ['tools', 'instructions'] as const;
/** A body has one of these, by its endpoint. */
const MAIN = ['messages', 'input', 'prompt'] as const;
const NAMES: ReadonlyMap<string, Buffer> = new Map(
  [...LEADING, ...MAIN].map((name) => [name, Buffer.from(name)]),
);

/**
 * A function that finds the raw bytes of `tools`, `instructions`, and `messages`, `input` or `prompt` in a
 * line that has passed validation (docs/design/batch-path.md#order-of-sending). The bytes only serve to
 * compare prompts, so they may go beyond the last of these members, up to the end of the line: finding its
 * end would double the cost. Repeated members may be found in another place than `JSON.parse` finds them.
 *
 * @param minBytes the prompt of a shorter line is not looked for, and has no ranges
 */
export function createPromptFinder(
  minBytes: number,
): (line: LineBytes, body: Members) => PromptBytes {
  const finder = new PromptFinder(minBytes);
  return (line, body) => finder.find(line, body);
}

class PromptFinder {
  readonly #minBytes: number;
  readonly #found: { bytes: Buffer; ranges: number[] } = { bytes: Buffer.alloc(0), ranges: [] };
  readonly #tools = new RepeatedArray();

  constructor(minBytes: number) {
    this.#minBytes = minBytes;
  }

  find(line: LineBytes, body: Members): PromptBytes {
    const found = this.#found;
    found.bytes = line.bytes;
    found.ranges.length = 0;
    if (line.end - line.start < this.#minBytes) return found;
    const main = MAIN.find((name) => isPresent(body[name]));
    const wanted = [...LEADING, ...MAIN.filter((name) => name === main)];
    this.#walk(
      line,
      wanted.filter((name) => isPresent(body[name])),
    );
    return found;
  }

  /** Finds the wanted members in the line. */
  #walk({ bytes, start, end }: LineBytes, wanted: string[]): void {
    const { ranges } = this.#found;
    const inLine = new MemberWalk(bytes, skipBlanks(bytes, start), end);
    while (inLine.next()) if (inLine.isNamed(BODY)) break;
    const inBody = new MemberWalk(bytes, inLine.valueStart, end);
    for (let left = wanted.length; left > 0 && inBody.next();) {
      const index = wanted.findIndex((name) => inBody.isNamed(nameOf(name)));
      if (index === -1 || ranges[2 * index] !== undefined) continue;
      left--;
      const { valueStart } = inBody;
      const isLast = left === 0 && index === wanted.length - 1;
      if (wanted[index] === 'tools') inBody.valueEnd = this.#tools.endIn(bytes, valueStart);
      ranges[2 * index] = valueStart;
      ranges[2 * index + 1] = isLast ? end : inBody.valueEnd;
    }
  }
}

function nameOf(member: string): Buffer {
  return NAMES.get(member) ?? BODY;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Finds the end of an array at once if the line before had the same one, as most lines do with their tools. */
class RepeatedArray {
  #bytes = Buffer.alloc(0);

  /** Position after the value that begins at `from` of `json`. */
  endIn(json: Buffer, from: number): number {
    const { length } = this.#bytes;
    const known = from + length;
    const fits = length > 0 && known <= json.length;
    if (fits && json.compare(this.#bytes, 0, length, from, known) === 0) return known;
    const end = valueEnd(json, from);
    // No array is the beginning of another one, so equal bytes are the whole value.
    const isKept = json[from] === OPEN_BRACKET && end - from <= MAX_REPEATED;
    this.#bytes = isKept ? Buffer.from(json.subarray(from, end)) : Buffer.alloc(0);
    return end;
  }
}

/** Steps through the members of the object at a position of valid JSON. */
class MemberWalk {
  readonly #json: Buffer;
  readonly #end: number;
  #at: number;
  #keyClose = 0;
  #valueEnd = -1;
  keyOpen = 0;
  valueStart = 0;

  constructor(json: Buffer, open: number, end: number) {
    this.#json = json;
    this.#end = end;
    this.#at = open;
  }

  /** Steps to the next member; false if there is none. */
  next(): boolean {
    const json = this.#json;
    if (this.#keyClose > 0) {
      this.#at = skipBlanks(json, this.valueEnd);
      if (json[this.#at] !== COMMA) return false;
    }
    this.keyOpen = skipBlanks(json, this.#at + 1);
    if (this.keyOpen >= this.#end || json[this.keyOpen] !== QUOTE) return false;
    this.#keyClose = stringEnd(json, this.keyOpen);
    this.valueStart = skipBlanks(json, skipBlanks(json, this.#keyClose + 1) + 1);
    this.#valueEnd = -1;
    return true;
  }

  isNamed(name: Buffer): boolean {
    return isKey(this.#json, [this.keyOpen, this.#keyClose], name);
  }

  set valueEnd(position: number) {
    this.#valueEnd = position;
  }

  get valueEnd(): number {
    if (this.#valueEnd === -1) this.#valueEnd = valueEnd(this.#json, this.valueStart);
    return this.#valueEnd;
  }
}
