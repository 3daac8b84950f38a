import { NO_USAGE } from '../batch/counts';
import { asciiJson, asciiJsonString } from './ascii-json';
import { modelAt } from './answer-model';
import { LAST_BLANK, OPEN_BRACE, QUOTE, stringEnd } from './json-bytes';
import { createJsonCheck, NO_JSON_LIMITS } from './json-check';
import { memberStarts } from './json-keys';
import { usageAt } from './answer-usage';
import type { EmbeddedAnswer } from './embedded-answer';

const WRAPPED_CHARACTERS = 2000;
/** The character that decoding puts in place of bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd';
const MODEL = Buffer.from('model');
const USAGE = Buffer.from('usage');
/** No limits: only usage and model of an answer are parsed, so any size and depth is harmless. */
const fault = createJsonCheck(NO_JSON_LIMITS);

/**
 * Embeds any answer by the rules of core/openai/answer.ts, byte by byte in JavaScript. A JSON object in valid UTF-8 without
 * a BOM keeps every token. Anything else becomes an `invalid_response` error with its first 2,000 characters.
 */
export function embedAnyAnswer(status: number, body: Buffer): EmbeddedAnswer {
  const text = body.toString('utf8');
  if (!isWholeUtf8(text, body) || fault(body) !== null) return invalidResponse(text);
  // In valid UTF-8, one code unit per byte means ASCII.
  const ascii = text.length === body.length ? body : asciiJson(text);
  const json = withoutBlanks(ascii);
  if (json[0] !== OPEN_BRACE) return invalidResponse(text);
  if (status < 200 || status > 299) return { ok: false, json, usage: NO_USAGE, model: null };
  const [model = null, usage = null] = memberStarts(json, 0, [MODEL, USAGE]);
  return { ok: true, json, usage: usageAt(json, usage), model: modelAt(json, model) };
}

function invalidResponse(text: string): EmbeddedAnswer {
  return { ok: false, json: wrapped(text), usage: NO_USAGE, model: null };
}

/** A server may also send U+FFFD itself, so the bytes are compared if the text contains it. */
function isWholeUtf8(text: string, body: Buffer): boolean {
  return !text.includes(REPLACEMENT) || Buffer.from(text, 'utf8').equals(body);
}

/** Removes white space outside strings; returns `json` itself if there is none. */
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
