import { errorResult } from '../chat/error-answer';
import type { LineResult } from '../provider';
import { completionOf, responseIdOf, type AnswerContext } from './answer';
import { readRpcStatus } from './rpc-status';

/** What a line of a result file says about one request. */
export interface GoogleOutcome {
  /** A `GenerateContentResponse`, unless there is an error. */
  readonly response: unknown;
  /** A `google.rpc.Status`; anything else counts as none. */
  readonly error: unknown;
}

/** The result of one line in OpenAI's format (docs/design/providers.md#google-models). Pure and total. @param mask hides keys */
export function lineResultOf(
  { response, error }: GoogleOutcome,
  context: AnswerContext,
  mask: (text: string) => string,
): LineResult {
  const { wireId } = context;
  const status = readRpcStatus(error);
  if (status?.isCancelled === true) return { kind: 'unanswered', wireId, reason: 'cancelled' };
  if (status !== null) {
    const { httpStatus, code } = status;
    const message = mask(status.message);
    return errorResult({ wireId, status: httpStatus, code, message, requestId: null });
  }
  const body = completionOf(response, context);
  if (body === null) {
    const message = 'the response has neither a candidate nor an error';
    return { kind: 'failed', wireId, error: { code: 'empty_response', message } };
  }
  return { kind: 'answer', wireId, status: 200, requestId: responseIdOf(response), body };
}
