import type { HeaderFields } from '../header-fields';
import { MalformedResponse } from './malformed-response';

/** Values of {@link ResponseHead.bodyBytes} for bodies whose length is not known at the start. */
export const CHUNKED = -1;
export const UNTIL_CLOSE = -2;

const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
/** A status line, then fields (RFC 9112, sections 4 and 5). Folded lines are not allowed. */
const HEAD = /^HTTP\/1\.[01] \d{3}(?: [^\0\r\n]*)?(?:\r\n[\w!#$%&'*+.^`|~-]+:[^\0\r\n]*)*$/;
const STATUS_AT = 'HTTP/1.1 '.length;
const SPACE = 0x20;
const TAB = 0x09;

/** The head of a response. Fields are looked up in its text: a table would cost more than the few that are read. */
export class ResponseHead implements HeaderFields {
  readonly status: number;
  readonly #text: string;
  /** The text with names in lower case. */
  readonly #lower: string;

  /** @param text from the status line to the last field, in Latin-1. @throws MalformedResponse */
  constructor(text: string) {
    if (!HEAD.test(text)) throw new MalformedResponse('the head of the answer is not HTTP/1.1');
    this.#text = text;
    this.#lower = text.toLowerCase();
    this.status = Number(text.slice(STATUS_AT, STATUS_AT + 3));
  }

  /** Whether another response follows for the same request. */
  get isInterim(): boolean {
    return this.status < 200;
  }

  /** Whether the server keeps the connection open (RFC 9112, section 9.3). */
  get persists(): boolean {
    const options = this.joined('connection')?.toLowerCase() ?? '';
    if (this.#text.startsWith('HTTP/1.1')) return !isListed('close', options);
    return isListed('keep-alive', options);
  }

  /**
   * Length of the body, {@link CHUNKED} or {@link UNTIL_CLOSE} (RFC 9112, section 6.3). Two lengths, or a length beside
   * chunks, may be an attempt to smuggle a response, so they are refused. @throws MalformedResponse
   */
  get bodyBytes(): number {
    const length = this.joined('content-length');
    const coding = this.joined('transfer-encoding');
    if (coding !== null && length !== null) {
      throw new MalformedResponse('the answer has a content-length and a transfer-encoding');
    }
    if (this.status === NO_CONTENT || this.status === NOT_MODIFIED) return 0;
    if (coding !== null) return this.#codedBytes(coding);
    if (length === null) return UNTIL_CLOSE;
    if (/^\d{1,15}$/.test(length)) return Number(length);
    throw new MalformedResponse(`the content-length of the answer is not a number: ${length}`);
  }

  first(name: string): string | null {
    const at = this.#lower.indexOf(`\r\n${name}:`);
    return at === -1 ? null : this.#valueAt(at + name.length + 3);
  }

  joined(name: string): string | null {
    const field = `\r\n${name}:`;
    let joined: string | null = null;
    for (let at = this.#lower.indexOf(field); at !== -1; at = this.#lower.indexOf(field, at + 1)) {
      const value = this.#valueAt(at + field.length);
      joined = joined === null ? value : `${joined}, ${value}`;
    }
    return joined;
  }

  pairs(): string[] {
    const [, ...lines] = this.#text.split('\r\n');
    return lines.flatMap((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), withoutBlanks(line, colon + 1, line.length)];
    });
  }

  #codedBytes(coding: string): number {
    if (!this.#text.startsWith('HTTP/1.1')) {
      throw new MalformedResponse('the answer has a transfer-encoding, which HTTP/1.0 does not');
    }
    return /(?:^|,)[\t ]*chunked$/i.test(coding) ? CHUNKED : UNTIL_CLOSE;
  }

  #valueAt(start: number): string {
    const end = this.#text.indexOf('\r\n', start);
    return withoutBlanks(this.#text, start, end === -1 ? this.#text.length : end);
  }
}

/** `trim` would also remove characters that are not white space in HTTP. */
function withoutBlanks(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function isListed(option: string, list: string): boolean {
  return list.includes(option) && list.split(',').some((one) => one.trim() === option);
}
