import { fnv64Hex } from '../names/fnv';

/**
 * Every value that Temporal receives and that a client can influence is made here, and measured as the
 * server measures it: the bytes of its JSON text in UTF-8. A value over a limit of the server does not
 * merely get lost: it refuses the start of a workflow, or terminates one that runs.
 *
 * | value                    | server's limit                                | ours      |
 * |--------------------------|-----------------------------------------------|-----------|
 * | one search attribute     | 2,048 bytes; 255 characters in SQL visibility | 255 bytes |
 * | a list of keywords       | 2,048 bytes                                   | 1,024     |
 * | memo                     | 2 kB (warns)                                  | 512       |
 * | summary                  | 400                                           | 200       |
 * | details                  | 20,000                                        | 16,000    |
 * | fairness key             | 64 (not JSON)                                 | 64        |
 * | failure                  | 4 kB (cut), 2 MB (refused)                    | 2,000     |
 * | result, input, heartbeat | 512 kB (warns), 2 MB (refused)                | names 64 KiB, 500 ranges |
 */
export const TEMPORAL_LIMITS = {
  keywordBytes: 255,
  keywordListBytes: 1_024,
  keywordListItems: 20,
  memoBytes: 512,
  summaryBytes: 200,
  detailsBytes: 16_000,
  fairnessKeyBytes: 64,
  failureBytes: 2_000,
  /** Of all model names of one file: they are in the result of ingestion and in every hand-over. */
  modelNamesBytes: 64 * 1024,
  /** Ranges of plans in one result. */
  ranges: 500,
} as const;

/** A search attribute of type Keyword: longer values keep their beginning and end with a digest. */
export function keyword(text: string): string {
  const clean = cleaned(text);
  const max = TEMPORAL_LIMITS.keywordBytes;
  if (clean === text && jsonBytes(clean) <= max) return clean;
  const digest = `~${fnv64Hex(text)}`;
  return cut(clean, max - digest.length) + digest;
}

/** A search attribute of type KeywordList: as many of the values, in order, as it can hold. */
export function keywordList(texts: readonly string[]): string[] {
  const kept: string[] = [];
  let bytes = '[]'.length;
  for (const text of texts.slice(0, TEMPORAL_LIMITS.keywordListItems)) {
    const value = keyword(text);
    bytes += jsonBytes(value) + ','.length;
    if (bytes > TEMPORAL_LIMITS.keywordListBytes) break;
    kept.push(value);
  }
  return kept;
}

/** A value of the memo. */
export function memoText(text: string): string {
  return fitted(text, TEMPORAL_LIMITS.memoBytes);
}

/** The summary of a workflow, an activity or a timer: one line. */
export function summaryText(text: string): string {
  return fitted(text, TEMPORAL_LIMITS.summaryBytes);
}

/** Current details: Markdown, cut between lines. */
export function detailsText(markdown: string): string {
  const lines = markdown.split('\n').map((line) => cleaned(line));
  const max = TEMPORAL_LIMITS.detailsBytes - jsonBytes(MORE);
  let bytes = 0;
  // A line break is two bytes in JSON, as many as the quotes that are counted with each line.
  const fits = lines.findIndex((line) => (bytes += jsonBytes(line)) > max);
  return fits === -1 ? lines.join('\n') : lines.slice(0, fits).join('\n') + MORE;
}

/** A tenant as a fairness key; `digest` makes at most 64 ASCII characters of a longer name. */
export function fairnessKey(tenant: string, digest: (text: string) => string): string {
  const isFit = cleaned(tenant) === tenant && utf8Bytes(tenant) <= TEMPORAL_LIMITS.fairnessKeyBytes;
  return isFit ? tenant : digest(tenant).slice(0, TEMPORAL_LIMITS.fairnessKeyBytes);
}

/** The message of a failure, or another free text in a result or heartbeat. */
export function failureText(message: string): string {
  return fitted(message, TEMPORAL_LIMITS.failureBytes, KEEPS_LINES);
}

/** Whether the names of all models of a file may travel in results and hand-overs together. */
export function fitsModelNames(names: Iterable<string>): boolean {
  let bytes = 0;
  for (const name of names) bytes += jsonBytes(name);
  return bytes <= TEMPORAL_LIMITS.modelNamesBytes;
}

/** Bytes of a text as JSON in UTF-8, its quotes included. */
export function jsonBytes(text: string): number {
  let bytes = 2;
  for (const char of text) bytes += charJsonBytes(char);
  return bytes;
}

const REPLACEMENT = '\uFFFD';
const ELLIPSIS = '…';
const MORE = '\n\n… (more than can be shown here)';
/** Control characters and halves of surrogate pairs: no UTF-8 has the latter, and JSONB no NUL. */
const UNFIT = /[\p{Cc}\p{Cs}]/gu;
const UNFIT_BUT_LINES = /[^\P{Cc}\n]|\p{Cs}/gu;
const KEEPS_LINES = true;

function cleaned(text: string, keepsLines = false): string {
  return text.replace(keepsLines ? UNFIT_BUT_LINES : UNFIT, REPLACEMENT);
}

function fitted(text: string, maxBytes: number, keepsLines = false): string {
  // Nothing beyond `maxBytes` characters can fit: a text of megabytes is not looked at as a whole.
  const clean = cleaned(text.slice(0, maxBytes + 1), keepsLines);
  if (text.length <= maxBytes && jsonBytes(clean) <= maxBytes) return clean;
  return cut(clean, maxBytes - charJsonBytes(ELLIPSIS)) + ELLIPSIS;
}

/** As many whole characters from the front as have `maxBytes` as JSON. */
function cut(text: string, maxBytes: number): string {
  let bytes = 2;
  let end = 0;
  for (const char of text) {
    bytes += charJsonBytes(char);
    if (bytes > maxBytes) break;
    end += char.length;
  }
  return text.slice(0, end);
}

const ESCAPED_SHORT = new Set(['"', '\\', '\b', '\f', '\n', '\r', '\t']);

function charJsonBytes(char: string): number {
  const point = char.codePointAt(0) ?? 0;
  if (ESCAPED_SHORT.has(char)) return 2;
  // `\u0000`: controls, and halves of surrogate pairs, which JSON.stringify escapes as well.
  if (point < 0x20 || (point >= 0xd800 && point <= 0xdfff)) return 6;
  return pointBytes(point);
}

function pointBytes(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
}

function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const char of text) bytes += pointBytes(char.codePointAt(0) ?? 0);
  return bytes;
}
