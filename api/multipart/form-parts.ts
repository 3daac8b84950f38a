import { malformed } from './malformed';
import { type PartHeader, parsePartHeader } from './part-header';

/** One part of a form, in the order of the wire. */
export interface FormPart extends PartHeader {
  /** The part's bytes. What is not read when the next part is asked for is skipped. */
  readonly body: AsyncIterable<Buffer>;
}

const MAX_HEADER_BYTES = 16 * 1024;
const MAX_PARTS = 100;
const HEADER_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);

/**
 * Parts of a `multipart/form-data` body (RFC 7578), pulled: bytes are taken from `source` only when
 * the reader asks for them, so a slow store slows the sender down and memory stays flat. A boundary is
 * looked for with the native `indexOf`, which keeps up with any network.
 *
 * @throws invalid_request where the body is no form, ends early, or has too many parts
 */
export async function* formParts(
  source: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<FormPart> {
  const form = new FormReader(source, boundary);
  try {
    await form.skipPastDelimiter();
    for (let count = 1; !(await form.atEnd()); count++) {
      if (count > MAX_PARTS) throw malformed(`it has more than ${MAX_PARTS} parts`);
      const header = parsePartHeader(await form.readHeader());
      yield { ...header, body: form.body() };
      await form.skipPastDelimiter();
    }
    await form.hearOut();
  } finally {
    await form.letGo();
  }
}

/** The boundary of a `multipart/form-data` content type; null for any other. */
export function formBoundary(contentType: string | undefined): string | null {
  if (contentType === undefined || !/^\s*multipart\/form-data\s*;/i.test(contentType)) return null;
  const match = /;\s*boundary=(?:"([^"]{1,200})"|([^\s";]{1,200}))/i.exec(contentType);
  return match === null ? null : (match[1] ?? match[2] ?? null);
}

/** Position in a form: `#pending` holds what was taken from the source and not yet handed out. */
class FormReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #delimiter: Buffer;
  // The first boundary has no line before it: a line end put in front makes it look like the others.
  #pending: Buffer = Buffer.from('\r\n');
  #inBody = true;

  constructor(source: AsyncIterable<Buffer>, boundary: string) {
    this.#source = source[Symbol.asyncIterator]();
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
  }

  /** Tells the source that nobody will ask for more, also where the form was left early. */
  async letGo(): Promise<void> {
    await this.#source.return?.();
  }

  /** Reads what follows the form: a request that is cut there is cut. */
  async hearOut(): Promise<void> {
    while ((await this.#source.next()).done !== true);
  }

  /** Right after a delimiter: whether it was the last one. */
  async atEnd(): Promise<boolean> {
    while (this.#pending.length < 2) await this.#more();
    return this.#pending[0] === 0x2d && this.#pending[1] === 0x2d;
  }

  /** Everything between a delimiter and the empty line, the line end of the delimiter included. */
  async readHeader(): Promise<Buffer> {
    for (;;) {
      const end = this.#pending.indexOf(HEADER_END);
      if (end > MAX_HEADER_BYTES || (end < 0 && this.#pending.length > MAX_HEADER_BYTES)) {
        throw malformed('the header of a part is too long');
      }
      if (end >= 0) {
        const header = this.#pending.subarray(0, end);
        this.#pending = this.#pending.subarray(end + HEADER_END.length);
        this.#inBody = true;
        return header;
      }
      await this.#more();
    }
  }

  async *body(): AsyncGenerator<Buffer> {
    while (this.#inBody) {
      const chunk = await this.#nextOfBody();
      if (chunk.length > 0) yield chunk;
    }
  }

  async skipPastDelimiter(): Promise<void> {
    while (this.#inBody) await this.#nextOfBody();
  }

  /** The next bytes of the body; behind its last ones the reader stands after the delimiter. */
  async #nextOfBody(): Promise<Buffer> {
    const end = this.#pending.indexOf(this.#delimiter);
    if (end >= 0) {
      const chunk = this.#pending.subarray(0, end);
      this.#pending = this.#pending.subarray(end + this.#delimiter.length);
      this.#inBody = false;
      return chunk;
    }
    // The last bytes may be the beginning of a delimiter: they stay until more is known.
    const safe = Math.max(0, this.#pending.length - this.#delimiter.length + 1);
    const chunk = this.#pending.subarray(0, safe);
    this.#pending = this.#pending.subarray(safe);
    if (chunk.length === 0) await this.#more();
    return chunk;
  }

  async #more(): Promise<void> {
    const next = await this.#source.next();
    if (next.done === true) throw malformed('it ends before its closing boundary');
    const { length } = this.#pending;
    this.#pending = length === 0 ? next.value : Buffer.concat([this.#pending, next.value]);
  }
}

/** All bytes of a part that is meant to be short. @throws invalid_request above `maxBytes` */
export async function readPart(part: FormPart, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of part.body) {
    length += chunk.length;
    if (length > maxBytes) throw malformed(`the field ${part.name} is too long`);
    chunks.push(chunk);
  }
  return chunks.length === 0 ? NOTHING : Buffer.concat(chunks);
}
