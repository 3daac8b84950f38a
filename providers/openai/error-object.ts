import { isJsonObject } from '../../core/openai/json-object';
import type { ProviderError } from '../provider';

/** An error in the provider's words, and whether it means that a quota is used up. */
export interface OpenAiError extends ProviderError {
  readonly isQuotaRefusal: boolean;
}

/** Codes and types of errors after which the same request may succeed later, when there is room again. */
const QUOTA_CODES: ReadonlySet<string> = new Set([
  'billing_hard_limit_reached',
  'insufficient_quota',
  'quota_exceeded',
  'rate_limit_exceeded',
  'rate_limited',
  'token_limit_exceeded',
]);

/** Whether a code says that a quota of the account is used up. */
export function isQuotaCode(code: string | null): boolean {
  return code !== null && QUOTA_CODES.has(code.toLowerCase());
}

/**
 * The error object of an answer without success: `{"error": {"message", "type", "code"}}`. Null if the body is
 * something else, so another server wrote it.
 */
export function readErrorObject(json: unknown): OpenAiError | null {
  const error = isJsonObject(json) ? json['error'] : undefined;
  if (!isJsonObject(error) || typeof error['message'] !== 'string') return null;
  const code = textOf(error['code']);
  const type = textOf(error['type']);
  return {
    code: code ?? type,
    message: error['message'],
    isQuotaRefusal: isQuotaCode(code) || isQuotaCode(type),
  };
}

/** A string or a number as text; null for anything else. Some hosts send the HTTP status as `code`. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : null;
}
