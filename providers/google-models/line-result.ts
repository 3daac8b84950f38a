import { chatError } from '../chat/completion';
import type { LineResult } from '../provider';
import { completionOf, responseIdOf, type AnswerContext } from './answer';
import { readRpcStatus, type RpcStatus } from './rpc-status';

/** Statuses of errors that are about the account and not about the request. */
const ACCOUNT_STATUSES: ReadonlySet<number> = new Set([401, 403, 429]);

/** What a line of a result file says about one request. */
export interface GoogleOutcome {
  /** A `GenerateContentResponse`, unless there is an error. */
  readonly response: unknown;
  /** A `google.rpc.Status`; anything else counts as none. */
  readonly error: unknown;
}

/** The result of one line in OpenAI's format (docs/design/providers.md#google-models). Pure and total. */
export function lineResultOf(
  { response, error }: GoogleOutcome,
  context: AnswerContext,
): LineResult {
  const { wireId } = context;
  const status = readRpcStatus(error);
  if (status !== null) return errorResult(status, wireId);
  const body = completionOf(response, context);
  if (body === null) {
    const message = 'the response has neither a candidate nor an error';
    return { kind: 'failed', wireId, error: { code: 'empty_response', message } };
  }
  return { kind: 'answer', wireId, status: 200, requestId: responseIdOf(response), body };
}

function errorResult({ isCancelled, httpStatus, code }: RpcStatus, wireId: string): LineResult {
  if (isCancelled) return { kind: 'unanswered', wireId, reason: 'cancelled' };
  const isAboutAccount = ACCOUNT_STATUSES.has(httpStatus);
  const body = chatError({
    type: httpStatus < 500 ? 'invalid_request_error' : 'server_error',
    message: isAboutAccount
      ? 'The provider refused this batch.'
      : `The provider answered this request with ${code ?? 'an error'}.`,
    code: isAboutAccount ? null : code,
  });
  return { kind: 'answer', wireId, status: httpStatus, requestId: null, body };
}
