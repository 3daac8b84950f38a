import { isAscii, isUtf8 } from 'node:buffer';
import { createInputErrors, type InputError } from '../../../core/openai/input-errors';
import { skipBlanks, valueEnd } from '../../../core/openai/json-bytes';
import { memberStarts } from '../../../core/openai/json-keys';
import { isJsonObject } from '../../../core/openai/json-object';
import { checkLine, type LineRules } from '../../../core/openai/line-check';
import { createLineSplitter } from '../../../core/openai/line-splitter';

/** One request of an input file. */
export interface InputLine {
  readonly customId: string;
  /** The bytes of `body`, as they were sent. */
  readonly body: Buffer;
}

/** OpenAI's limit of requests in a batch. */
const MAX_LINES = 50_000;
const BODY = Buffer.from('body');

/** Reads a valid input file. */
export function readLines(file: Buffer): InputLine[] {
  const lines: InputLine[] = [];
  eachLine(file, (bytes, value) => {
    if (!isJsonObject(value) || typeof value['custom_id'] !== 'string') return;
    const [start = null] = memberStarts(bytes, skipBlanks(bytes, 0), [BODY]);
    if (start === null) return;
    const body = bytes.subarray(start, valueEnd(bytes, start));
    lines.push({ customId: value['custom_id'], body });
  });
  return lines;
}

/**
 * Checks an input file as the validation of a batch does.
 * @param namesUrl whether lines must name method and URL
 */
export function checkLines(
  file: Buffer,
  endpoint: string,
  namesUrl: boolean,
): { readonly lines: number; readonly errors: readonly InputError[] } {
  const errors = createInputErrors();
  const rules: LineRules = { endpoint, moderationDefaultModel: 'omni-moderation-latest' };
  const seen = new Set<string>();
  let firstModel: string | null = null;
  let lines = 0;
  eachLine(file, (_, value, line) => {
    lines++;
    const report = (code: InputError['code'], message: string, param: string | null): void => {
      errors.add({ code, message, param, line });
    };
    if (!isJsonObject(value)) return report('invalid_json_line', 'This line is not JSON.', null);
    const whole = namesUrl ? value : { method: 'POST', url: endpoint, ...value };
    const { customId, model } = checkLine(whole, rules, report);
    if (customId !== null && seen.has(customId)) {
      report('duplicate_custom_id', 'The custom_id is used twice.', 'custom_id');
    }
    if (customId !== null) seen.add(customId);
    firstModel ??= model;
    if (model !== null && model !== firstModel) {
      report('mismatched_model', 'All requests must have the same model.', 'body.model');
    }
  });
  const ofFile = (code: InputError['code'], message: string): void => {
    errors.add({ code, message, param: null, line: null });
  };
  if (lines === 0) ofFile('empty_file', 'The input file is empty.');
  if (lines > MAX_LINES) ofFile('too_many_tasks', `The file has more than ${MAX_LINES} requests.`);
  return { lines, errors: errors.list() };
}

/** Calls `take` with the bytes, the parsed value (undefined if it is not JSON), and the number from 1. */
function eachLine(
  file: Buffer,
  take: (bytes: Buffer, value: unknown, number: number) => void,
): void {
  const splitter = createLineSplitter({
    maxLineBytes: Number.MAX_SAFE_INTEGER,
    checks: { isAscii, isUtf8 },
    consumer: {
      line: ({ bytes, start, end, number }) => {
        const line = bytes.subarray(start, end);
        take(line, parsed(line), number);
      },
      tooLong: () => undefined,
    },
  });
  splitter.push(file);
  splitter.end();
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
