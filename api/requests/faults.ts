import { NightshiftError } from '../../core/errors';

/** OpenAI's codes for a wrong request (docs/design/api-contract.md#request-error-codes). */
export type FaultCode =
  | 'missing_required_parameter'
  | 'invalid_value'
  | 'invalid_type'
  | 'unknown_parameter'
  | 'integer_below_min_value'
  | 'integer_above_max_value'
  | 'object_above_max_properties'
  | 'string_above_max_length'
  | 'property_name_above_max_length'
  | 'idempotency_key_reused'
  | 'delegation_loop';

/** A 400 with OpenAI's code and the name of the field. */
export function fault(code: FaultCode, param: string, message: string): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode: code });
}

/** A required field that is absent or null. */
export function missing(param: string): NightshiftError {
  return fault('missing_required_parameter', param, `Missing required parameter: '${param}'.`);
}

/** An answer repeats at most this many characters of an unknown name. */
const SHOWN_CHARS = 64;

/** A field that the endpoint does not have. */
export function unknownParameter(name: string): NightshiftError {
  const param = [...name.slice(0, 2 * SHOWN_CHARS)].slice(0, SHOWN_CHARS).join('');
  return fault('unknown_parameter', param, `Unknown parameter: '${param}'.`);
}

/** `expected` completes "expected …", e.g. `a string`. */
export function wrongType(param: string, expected: string): NightshiftError {
  return fault('invalid_type', param, `Invalid type for '${param}': expected ${expected}.`);
}

/** `expected` completes "expected …", e.g. `one of 'asc' or 'desc'`. */
export function wrongValue(param: string, expected: string): NightshiftError {
  return fault('invalid_value', param, `Invalid value for '${param}': expected ${expected}.`);
}

/** A value beyond a bound; `expected` completes "expected …", e.g. `an integer of at most 9, got 10`. */
export function outOfBounds(code: FaultCode, param: string, expected: string): NightshiftError {
  return fault(code, param, `Invalid '${param}': expected ${expected}.`);
}
