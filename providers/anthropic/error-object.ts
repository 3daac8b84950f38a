import { isJsonObject } from '../../core/openai/json-object';
import type { ProviderError } from '../provider';

/** An error of Anthropic. */
export interface AnthropicError extends ProviderError {
  readonly isQuotaRefusal: boolean;
  readonly requestId: string | null;
}

/** HTTP statuses by the type of an error (https://platform.claude.com/docs/en/api/errors). */
const STATUSES: ReadonlyMap<string | null, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);
/** Anthropic refuses requests of an account without credit as invalid, and says why in the text only. */
const NO_CREDIT = /credit balance is too low/i;

/**
 * The error object of an answer or a result: `{"type": "error", "error": {"type", "message"}, "request_id"}`. Null if
 * it is something else, so another server wrote it.
 */
export function readErrorObject(json: unknown): AnthropicError | null {
  if (!isJsonObject(json) || !isJsonObject(json['error'])) return null;
  const { type, message } = json['error'];
  if (typeof type !== 'string' || typeof message !== 'string') return null;
  const { request_id: id } = json;
  const isAboutMoney = type === 'billing_error' || NO_CREDIT.test(message);
  return {
    code: type,
    message,
    isQuotaRefusal: isAboutMoney || type === 'rate_limit_error',
    requestId: typeof id === 'string' ? id : null,
  };
}

/** The HTTP status of an error in a result, which has none. A type that we do not know is the provider's failure. */
export function statusOf(code: string | null): number {
  return STATUSES.get(code) ?? 500;
}
