/**
 * Body of every answer that is not a success, always with these four keys
 * (docs/design/api-contract.md#error-envelope).
 */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** Content type of every answer but a download. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Seconds after which a client may try again, by status (docs/design/api-contract.md#retry-after). */
export const RETRY_AFTER_SEC = { 429: '5', 503: '2' } as const;

/** The body of a 4xx without param and code. */
export function invalidRequest(message: string): ErrorBody {
  return { error: { message, type: 'invalid_request_error', param: null, code: null } };
}
