import type { LineResult } from '../provider';
import { chatError } from './completion';

/** How a provider refused one request. */
export interface RefusedRequest {
  readonly wireId: string;
  /** HTTP status, ≥ 400. */
  readonly status: number;
  /** The provider's word for the error. */
  readonly code: string | null;
  readonly requestId: string | null;
}

/** Statuses of errors that are about the account and not about the request. */
const ACCOUNT_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 429]);

/**
 * The result of a line that the provider answered with an error. The text is ours: the provider's own may name an
 * organization, or quote a key.
 */
export function errorResult({ wireId, status, code, requestId }: RefusedRequest): LineResult {
  const isAboutAccount = ACCOUNT_STATUSES.has(status);
  const body = chatError({
    type: status < 500 ? 'invalid_request_error' : 'server_error',
    message: isAboutAccount
      ? 'The provider refused this batch.'
      : `The provider answered this request with ${code ?? 'an error'}.`,
    code: isAboutAccount ? null : code,
  });
  return { kind: 'answer', wireId, status, requestId, body };
}
