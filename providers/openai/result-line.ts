import { createJsonCheck, NO_JSON_LIMITS } from '../../core/openai/json-check';
import { OPEN_BRACE, QUOTE, skipBlanks, stringEnd, valueEnd } from '../../core/openai/json-bytes';
import { decoded, memberStarts } from '../../core/openai/json-keys';
import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import type { LineResult } from '../provider';
import { textOf } from './error-object';

const LINE_MEMBERS = ['custom_id', 'response', 'error'].map((name) => Buffer.from(name));
const RESPONSE_MEMBERS = ['status_code', 'request_id', 'body'].map((name) => Buffer.from(name));
/** Codes of lines that the provider did not run. */
const UNANSWERED: ReadonlyMap<string, 'expired' | 'cancelled'> = new Map([
  ['batch_expired', 'expired'],
  ['batch_cancelled', 'cancelled'],
]);
const fault = createJsonCheck(NO_JSON_LIMITS);

/**
 * Reads a line of an output or error file; null if it is not a result. The body of an answer keeps its bytes
 * and shares no memory with `line`.
 */
export function readResultLine(line: Buffer, mask: (text: string) => string): LineResult | null {
  if (fault(line) !== null) return null;
  const [id = null, response = null, error = null] = memberStarts(
    line,
    skipBlanks(line, 0),
    LINE_MEMBERS,
  );
  if (id === null || line[id] !== QUOTE) return null;
  const wireId = decoded(line, id, stringEnd(line, id));
  if (response !== null && line[response] === OPEN_BRACE) {
    return readAnswer(line, response, wireId);
  }
  return error === null ? null : readFailure(parsedAt(line, error), wireId, mask);
}

function readAnswer(line: Buffer, response: number, wireId: string): LineResult | null {
  const [code = null, id = null, body = null] = memberStarts(line, response, RESPONSE_MEMBERS);
  const status = code === null ? null : parsedAt(line, code);
  if (body === null || !isStatus(status)) return null;
  return {
    kind: 'answer',
    wireId,
    status,
    requestId: id === null ? null : textOf(parsedAt(line, id)),
    body: Buffer.from(line.subarray(body, valueEnd(line, body))),
  };
}

function readFailure(
  error: unknown,
  wireId: string,
  mask: (text: string) => string,
): LineResult | null {
  if (typeof error === 'string') {
    return { kind: 'failed', wireId, error: boundedError({ code: null, message: error }, mask) };
  }
  if (!isJsonObject(error)) return null;
  const code = textOf(error['code']);
  const reason = UNANSWERED.get(code ?? '');
  if (reason !== undefined) return { kind: 'unanswered', wireId, reason };
  const message = textOf(error['message']) ?? 'no message';
  return { kind: 'failed', wireId, error: boundedError({ code, message }, mask) };
}

function isStatus(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 100 && value <= 599;
}

function parsedAt(line: Buffer, start: number): unknown {
  return JSON.parse(line.toString('utf8', start, valueEnd(line, start)));
}
