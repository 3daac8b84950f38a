import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import { errorResult } from '../chat/error-answer';
import type { Json } from '../chat/values';
import type { LineResult } from '../provider';
import { completionOf, type AnswerContext } from './answer';
import { readErrorObject, statusOf } from './error-object';

/** How the lines of one job are read. */
export interface ResultLineOptions extends Omit<AnswerContext, 'wireId'> {
  readonly mask: (text: string) => string;
}

/**
 * Reads a line of the results of a Message Batch
 * (https://platform.claude.com/docs/en/api/retrieving-message-batch-results); null if it is not a result.
 */
export function readResultLine(line: Buffer, options: ResultLineOptions): LineResult | null {
  const json = parsed(line);
  if (!isJsonObject(json) || !isJsonObject(json['result'])) return null;
  const { custom_id: wireId, result } = json;
  if (typeof wireId !== 'string') return null;
  switch (result['type']) {
    case 'succeeded':
      return answered(result, wireId, options);
    case 'errored':
      return errored(result, wireId, options);
    case 'expired':
      return { kind: 'unanswered', wireId, reason: 'expired' };
    case 'canceled':
      return { kind: 'unanswered', wireId, reason: 'cancelled' };
    default: {
      const message = `a result of the unknown type ${String(result['type'])}`;
      const error = boundedError({ code: 'unknown_result', message }, options.mask);
      return { kind: 'failed', wireId, error };
    }
  }
}

function answered(result: Json, wireId: string, options: ResultLineOptions): LineResult {
  const body = completionOf(result['message'], { ...options, wireId });
  if (body !== null) return { kind: 'answer', wireId, status: 200, requestId: null, body };
  const message = 'the message has no content';
  return { kind: 'failed', wireId, error: { code: 'empty_response', message } };
}

function errored(result: Json, wireId: string, { mask }: ResultLineOptions): LineResult {
  const error = readErrorObject(result['error']);
  const { code = null, requestId = null } = error ?? {};
  const message = error === null ? null : mask(error.message);
  return errorResult({ wireId, status: statusOf(code), code, message, requestId });
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown;
  } catch {
    return null;
  }
}
