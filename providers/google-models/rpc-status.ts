import { isJsonObject } from '../../core/openai/json-object';
import type { ProviderError } from '../provider';

/** `google.rpc.Code`: its name, and its HTTP status (https://cloud.google.com/apis/design/errors#error_codes). */
const CODES: ReadonlyMap<number, readonly [name: string, httpStatus: number]> = new Map([
  [1, ['CANCELLED', 499]],
  [2, ['UNKNOWN', 500]],
  [3, ['INVALID_ARGUMENT', 400]],
  [4, ['DEADLINE_EXCEEDED', 504]],
  [5, ['NOT_FOUND', 404]],
  [6, ['ALREADY_EXISTS', 409]],
  [7, ['PERMISSION_DENIED', 403]],
  [8, ['RESOURCE_EXHAUSTED', 429]],
  [9, ['FAILED_PRECONDITION', 400]],
  [10, ['ABORTED', 409]],
  [11, ['OUT_OF_RANGE', 400]],
  [12, ['UNIMPLEMENTED', 501]],
  [13, ['INTERNAL', 500]],
  [14, ['UNAVAILABLE', 503]],
  [15, ['DATA_LOSS', 500]],
  [16, ['UNAUTHENTICATED', 401]],
]);
/** Reasons of a 400 that is about the key, and not about the request. */
const KEY_REASONS: ReadonlySet<string> = new Set(['API_KEY_INVALID', 'API_KEY_EXPIRED']);

/** A `google.rpc.Status`, as bodies of errors and lines of results hold it. */
export interface RpcStatus extends ProviderError {
  /** Batches state either this or a `google.rpc.Code`. */
  readonly httpStatus: number;
  /** Whether the request did not run to its end. */
  readonly isCancelled: boolean;
  readonly isQuotaRefusal: boolean;
  /** Whether the key was refused. Google answers that with 400. */
  readonly isKeyRefused: boolean;
}

/**
 * Reads a status; null if the value is none. Its most exact word becomes the code: a reason in `details`, else
 * `status`, else the name of the number.
 */
export function readRpcStatus(json: unknown): RpcStatus | null {
  if (!isJsonObject(json)) return null;
  const { code, message, status, details } = json;
  if (typeof code !== 'number' && typeof status !== 'string') return null;
  const number = typeof code === 'number' ? code : 0;
  const named = [...CODES.values()].find(([name]) => name === status);
  const [name, mapped] = CODES.get(number) ?? named ?? [null, 500];
  const isHttp = Number.isInteger(number) && number >= 400 && number <= 599;
  const httpStatus = isHttp ? number : mapped;
  const word = typeof status === 'string' && status !== '' ? status : name;
  const reason = reasonIn(details);
  return {
    code: reason ?? word ?? (isHttp ? String(number) : null),
    message: typeof message === 'string' && message !== '' ? message : 'no message',
    httpStatus,
    isCancelled: httpStatus === 499 || word === 'CANCELLED',
    isQuotaRefusal: httpStatus === 429 || word === 'RESOURCE_EXHAUSTED',
    isKeyRefused: reason !== null && KEY_REASONS.has(reason),
  };
}

/** The status in the body of an error, `{"error": {…}}`; null if another server wrote the body. */
export function readRpcErrorBody(json: unknown): RpcStatus | null {
  return isJsonObject(json) ? readRpcStatus(json['error']) : null;
}

/** The reason of the first `google.rpc.ErrorInfo`. */
function reasonIn(details: unknown): string | null {
  if (!Array.isArray(details)) return null;
  for (const detail of details as readonly unknown[]) {
    const reason: unknown = isJsonObject(detail) ? detail['reason'] : null;
    if (typeof reason === 'string' && reason !== '') return reason;
  }
  return null;
}
