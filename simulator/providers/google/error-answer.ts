import { jsonAnswer, type ApiFault, type ProviderAnswer } from '../answer';

/** Names of `google.rpc.Code` by HTTP status. */
const NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'FAILED_PRECONDITION',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};

/** An error as Google's APIs write it: https://google.aip.dev/193. A code of our own is the reason in `details`. */
export function googleError({ httpStatus, message, apiCode }: ApiFault): ProviderAnswer {
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: apiCode,
    domain: 'googleapis.com',
  };
  const error = {
    code: httpStatus,
    message,
    status: NAMES[httpStatus] ?? 'UNKNOWN',
    ...(apiCode === null ? {} : { details: [info] }),
  };
  return jsonAnswer({ error }, httpStatus);
}
