import { isJsonObject } from '../../core/openai/json-object';
import { errorResult } from '../chat/error-answer';
import type { Json } from '../chat/values';
import type { LineResult } from '../provider';
import { completionOf, type AnswerContext } from './answer';

/**
 * Reads a line of an output file
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-results.html); null if it is not a result.
 */
export function readResultLine(
  line: Buffer,
  context: Omit<AnswerContext, 'wireId'>,
): LineResult | null {
  const json = parsed(line);
  const wireId: unknown = isJsonObject(json) ? json['recordId'] : null;
  if (!isJsonObject(json) || typeof wireId !== 'string') return null;
  if (isJsonObject(json['error'])) return refused(json['error'], wireId);
  const body = completionOf(json['modelOutput'], { ...context, wireId });
  if (body !== null) return { kind: 'answer', wireId, status: 200, requestId: null, body };
  const message = 'the record has neither an output nor an error';
  return { kind: 'failed', wireId, error: { code: 'empty_response', message } };
}

/** The code of an error is an HTTP status; anything else is taken for a fault of the provider. */
function refused({ errorCode }: Json, wireId: string): LineResult {
  const code = Number(errorCode);
  const status = Number.isInteger(code) && code >= 400 && code <= 599 ? code : 500;
  return errorResult({ wireId, status, code: null, requestId: null });
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown;
  } catch {
    return null;
  }
}
