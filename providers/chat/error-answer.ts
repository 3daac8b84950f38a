import type { LineResult } from '../provider';
import { chatError } from './completion';

/** How a provider refused one request. */
export interface RefusedRequest {
  readonly wireId: string;
  /** HTTP status, ≥ 400. */
  readonly status: number;
  /** The provider's word for the error. */
  readonly code: string | null;
  /** The provider's text, with the keys of the account masked; null or absent if it may not be shown. */
  readonly message?: string | null;
  readonly requestId: string | null;
}

/** Statuses of errors that are about the request itself, so that its sender can mend it. */
const REQUEST_STATUSES: ReadonlySet<number> = new Set([400, 413, 422]);
/** Statuses of errors that are about the account. */
const ACCOUNT_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 429]);
const MAX_MESSAGE = 2_000;

/**
 * The result of a line that the provider answered with an error. What it says of the request is shown. The texts of
 * other errors are ours, because the provider's own may name an organization.
 */
export function errorResult(refused: RefusedRequest): LineResult {
  const { wireId, status, code, requestId } = refused;
  const isAboutAccount = ACCOUNT_STATUSES.has(status);
  const body = chatError({
    type: status < 500 ? 'invalid_request_error' : 'server_error',
    message: isAboutAccount ? 'The provider refused this batch.' : textOf(refused),
    code: isAboutAccount ? null : code,
  });
  return { kind: 'answer', wireId, status, requestId, body };
}

function textOf({ status, code, message = null }: RefusedRequest): string {
  const text = `The provider answered this request with ${code ?? 'an error'}`;
  const isShown = message !== null && message !== '' && REQUEST_STATUSES.has(status);
  return isShown ? `${text}: ${message.slice(0, MAX_MESSAGE)}` : `${text}.`;
}
