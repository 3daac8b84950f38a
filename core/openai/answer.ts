import { NO_USAGE, type Usage } from '../batch/counts';
import { asciiJson, asciiJsonString } from './ascii-json';
import { modelAt } from './answer-model';
import { LAST_BLANK, OPEN_BRACE, QUOTE, stringEnd } from './json-bytes';
import { createJsonCheck, NO_JSON_LIMITS } from './json-check';
import { memberStarts } from './json-keys';
import { usageAt } from './answer-usage';

/** A backend's answer, ready to stand as `body` in a result line. */
export interface EmbeddedAnswer {
  /** 2xx and a valid JSON object: the line belongs into the output file. */
  readonly ok: boolean;
  /** ASCII JSON without blanks outside strings: the answer token for token, or the wrapped error. */
  readonly json: Buffer;
  /** Zeros where not `ok` (contract §6: the batch's usage sums over output lines). */
  readonly usage: Usage;
  /** The answer's `model`, where it is `ok` and names one. */
  readonly model: string | null;
}

const WRAPPED_CHARACTERS = 2000;
const REPLACEMENT = '\ufffd';

/**
 * Embeds an answer (contract §2.5, §7.1). A JSON object in valid UTF-8 without BOM keeps every token:
 * numbers, escapes and repeated members are not touched, only blanks outside strings go and non-ASCII
 * is escaped. Anything else is wrapped as an `invalid_response` error of its first 2,000 characters.
 */
export function embedAnswer(status: number, body: Buffer): EmbeddedAnswer {
  const text = body.toString('utf8');
  if (!isWholeUtf8(text, body) || fault(body) !== null) return invalidResponse(text);
  // One code unit per byte means ASCII, for valid UTF-8.
  const ascii = text.length === body.length ? body : asciiJson(text);
  const json = withoutBlanks(ascii);
  if (json[0] !== OPEN_BRACE) return invalidResponse(text);
  if (status < 200 || status > 299) return { ok: false, json, usage: NO_USAGE, model: null };
  const [model = null, usage = null] = memberStarts(json, 0, [MODEL, USAGE]);
  return { ok: true, json, usage: usageAt(json, usage), model: modelAt(json, model) };
}

/** Nothing of an answer is built but its usage, so it may be as large and as deep as it likes. */
const fault = createJsonCheck(NO_JSON_LIMITS);
const MODEL = Buffer.from('model');
const USAGE = Buffer.from('usage');
function invalidResponse(text: string): EmbeddedAnswer {
  return { ok: false, json: wrapped(text), usage: NO_USAGE, model: null };
}

/** Decoding replaces what is not UTF-8 by U+FFFD, which may also have been sent: then bytes decide. */
function isWholeUtf8(text: string, body: Buffer): boolean {
  return !text.includes(REPLACEMENT) || Buffer.from(text, 'utf8').equals(body);
}

/** Drops blanks outside strings; `json` itself where there are none. */
function withoutBlanks(json: Buffer): Buffer {
  let compact: Buffer | null = null;
  let length = 0;
  let kept = 0;
  let at = 0;
  while (at < json.length) {
    const byte = json[at] ?? 0;
    if (byte === QUOTE) {
      at = stringEnd(json, at) + 1;
    } else if (byte > LAST_BLANK) {
      at++;
    } else {
      compact ??= Buffer.allocUnsafe(json.length);
      length += json.copy(compact, length, kept, at);
      while (at < json.length && (json[at] ?? 0) <= LAST_BLANK) at++;
      kept = at;
    }
  }
  if (compact === null) return json;
  length += json.copy(compact, length, kept);
  return compact.subarray(0, length);
}

function wrapped(text: string): Buffer {
  const message = asciiJsonString(firstCharacters(text, WRAPPED_CHARACTERS));
  const json = `{"error":{"message":${message},"type":"server_error","param":null,"code":"invalid_response"}}`;
  return Buffer.from(json, 'latin1');
}

/** The first `count` code points. */
function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  return Array.from(text.slice(0, 2 * count))
    .slice(0, count)
    .join('');
}
