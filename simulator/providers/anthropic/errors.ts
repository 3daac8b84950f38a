import { jsonAnswer, type ApiFault, type ProviderAnswer } from '../answer';

/** Types of errors by HTTP status (https://platform.claude.com/docs/en/api/errors). */
const TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
]);
const REQUEST_ID = 'req_simulated';

/** An error object, as answers and results have it. */
export function errorObject(status: number, message: string): object {
  const preset = status < 500 ? 'invalid_request_error' : 'api_error';
  const type = TYPES.get(status) ?? preset;
  return { type: 'error', error: { type, message }, request_id: REQUEST_ID };
}

/** An error as an answer. */
export function errorAnswer({ httpStatus, message }: ApiFault): ProviderAnswer {
  const answer = jsonAnswer(errorObject(httpStatus, message), httpStatus);
  return { ...answer, headers: { 'request-id': REQUEST_ID } };
}
