import { fnv64Hex } from '../names/fnv';
import { charJsonBytes, jsonBytes, utf8Bytes } from './json-size';

/**
 * Bounds on every value that Temporal receives and that a client can influence. Sizes are measured as the
 * server measures them: bytes of the JSON text in UTF-8. If a value exceeds a limit of the server, the
 * server refuses to start the workflow or terminates a running one
 * (docs/design/temporal.md#bounds-on-values).
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
  /** All model names of one file: they are in the result of ingestion and in every hand-over. */
  modelNamesBytes: 64 * 1024,
  /** Plan ranges in one result. */
  ranges: 500,
} as const;

/** A search attribute of type Keyword. A longer value keeps its beginning and ends with a digest. */
export function keyword(text: string): string {
  const clean = cleaned(text);
  const max = TEMPORAL_LIMITS.keywordBytes;
  if (clean === text && jsonBytes(clean) <= max) return clean;
  const digest = `~${fnv64Hex(text)}`;
  return cut(clean, max - digest.length) + digest;
}

/** A search attribute of type KeywordList: the first values that fit. */
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
  // A line break takes two bytes in JSON, as many as the quotes that `jsonBytes` counts for each line.
  const fits = lines.findIndex((line) => (bytes += jsonBytes(line)) > max);
  return fits === -1 ? lines.join('\n') : lines.slice(0, fits).join('\n') + MORE;
}

/** A tenant as a fairness key. A name that does not fit becomes its ASCII `digest`, cut to 64 characters. */
export function fairnessKey(tenant: string, digest: (text: string) => string): string {
  const isFit = cleaned(tenant) === tenant && utf8Bytes(tenant) <= TEMPORAL_LIMITS.fairnessKeyBytes;
  return isFit ? tenant : digest(tenant).slice(0, TEMPORAL_LIMITS.fairnessKeyBytes);
}

/** The message of a failure, or other free text in a result or heartbeat. */
export function failureText(message: string): string {
  return fitted(message, TEMPORAL_LIMITS.failureBytes, KEEPS_LINES);
}

/** Whether the model names of a file fit into results and hand-overs. */
export function fitsModelNames(names: Iterable<string>): boolean {
  let bytes = 0;
  for (const name of names) bytes += jsonBytes(name);
  return bytes <= TEMPORAL_LIMITS.modelNamesBytes;
}

const REPLACEMENT = '\uFFFD';
const ELLIPSIS = '…';
const MORE = '\n\n… (more than can be shown here)';
/** Control characters and lone surrogates. JSONB cannot hold NUL, and UTF-8 cannot encode lone surrogates. */
const UNFIT = /[\p{Cc}\p{Cs}]/gu;
const UNFIT_BUT_LINES = /[^\P{Cc}\n]|\p{Cs}/gu;
const KEEPS_LINES = true;

function cleaned(text: string, keepsLines = false): string {
  return text.replace(keepsLines ? UNFIT_BUT_LINES : UNFIT, REPLACEMENT);
}

function fitted(text: string, maxBytes: number, keepsLines = false): string {
  // Characters beyond `maxBytes` cannot fit, so they are not scanned: a text may have megabytes.
  const clean = cleaned(text.slice(0, maxBytes + 1), keepsLines);
  if (text.length <= maxBytes && jsonBytes(clean) <= maxBytes) return clean;
  return cut(clean, maxBytes - charJsonBytes(ELLIPSIS)) + ELLIPSIS;
}

/** The longest prefix of whole characters that takes at most `maxBytes` as JSON. */
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
