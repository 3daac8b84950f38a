/**
 * Every error that Nightshift raises on purpose, by code. Codes are stable and never reused;
 * docs/errors.md explains each of them. `retryable` says whether the same call may succeed later.
 */
export const ERROR_CODES = {
  invalid_request: { httpStatus: 400, retryable: false },
  unauthorized: { httpStatus: 401, retryable: false },
  forbidden: { httpStatus: 403, retryable: false },
  not_found: { httpStatus: 404, retryable: false },
  method_not_allowed: { httpStatus: 405, retryable: false },
  conflict: { httpStatus: 409, retryable: false },
  payload_too_large: { httpStatus: 413, retryable: false },
  unsupported_media_type: { httpStatus: 415, retryable: false },
  unsupported_encoding: { httpStatus: 415, retryable: false },
  rate_limited: { httpStatus: 429, retryable: true },
  quota_exceeded: { httpStatus: 429, retryable: false },
  unavailable: { httpStatus: 503, retryable: true },
  config_invalid: { httpStatus: 500, retryable: false },
  data_dir_in_use: { httpStatus: 500, retryable: false },
  data_dir_unusable: { httpStatus: 500, retryable: false },
  port_in_use: { httpStatus: 500, retryable: false },
  temporal_unavailable: { httpStatus: 503, retryable: true },
  postgres_unavailable: { httpStatus: 503, retryable: true },
  commit_unknown: { httpStatus: 503, retryable: true },
  schema_outdated: { httpStatus: 500, retryable: false },
  schema_newer: { httpStatus: 500, retryable: false },
  store_mismatch: { httpStatus: 500, retryable: false },
  object_missing: { httpStatus: 500, retryable: false },
  object_corrupt: { httpStatus: 500, retryable: false },
  object_store_failed: { httpStatus: 503, retryable: true },
  input_missing: { httpStatus: 500, retryable: false },
  plan_unreadable: { httpStatus: 500, retryable: false },
  permit_released_twice: { httpStatus: 500, retryable: false },
  internal: { httpStatus: 500, retryable: false },
} as const satisfies Record<string, { httpStatus: number; retryable: boolean }>;

/** A code of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** Details of an error beyond code and message. */
export interface NightshiftErrorOptions {
  /** Name of the invalid request field, as OpenAI's `param`. */
  readonly param?: string;
  /** `code` in the API's error body (docs/design/api-contract.md#request-error-codes). */
  readonly apiCode?: string;
  readonly cause?: unknown;
}

/** The only error class of the product: a code of {@link ERROR_CODES}, and a message that says what to do. */
export class NightshiftError extends Error {
  readonly code: ErrorCode;
  readonly httpStatus: number;
  readonly retryable: boolean;
  readonly param: string | null;
  readonly apiCode: string | null;

  constructor(code: ErrorCode, message: string, options: NightshiftErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NightshiftError';
    this.code = code;
    this.httpStatus = ERROR_CODES[code].httpStatus;
    this.retryable = ERROR_CODES[code].retryable;
    this.param = options.param ?? null;
    this.apiCode = options.apiCode ?? null;
  }
}

/** Whether `error` is a {@link NightshiftError}, with this `code` if one is given. */
export function isNightshiftError(error: unknown, code?: ErrorCode): error is NightshiftError {
  return error instanceof NightshiftError && (code === undefined || error.code === code);
}

/** The result of a look-up in the object store, or null if there is no such object. */
export async function nullIfMissing<T>(lookUp: Promise<T>): Promise<T | null> {
  try {
    return await lookUp;
  } catch (error) {
    if (isNightshiftError(error, 'object_missing')) return null;
    throw error;
  }
}

/** For `catch`: turns `object_missing` into the error that it means to the caller, and passes on other errors. */
export function missingAs(code: ErrorCode, message: string) {
  return (error: unknown): never => {
    if (!isNightshiftError(error, 'object_missing')) throw error;
    throw new NightshiftError(code, message, { cause: error });
  };
}
