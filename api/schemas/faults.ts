import { NightshiftError } from '../../core/errors';

/** OpenAI's codes for a request that is wrong (contract §2.1). */
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
  | 'idempotency_key_reused';

/** A 400 with OpenAI's code and the name of the field. */
export function fault(code: FaultCode, param: string, message: string): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode: code });
}

/** A field that is required and absent, or null. */
export function missing(param: string): NightshiftError {
  return fault('missing_required_parameter', param, `Missing required parameter: '${param}'.`);
}

/** A text of more bytes than are stored. */
export function tooLong(param: string, maxBytes: number): NightshiftError {
  const message = `Invalid '${param}': expected a string of at most ${maxBytes} bytes.`;
  return fault('string_above_max_length', param, message);
}

/** Names that clients invent come back in the answer: no more of them than tells which. */
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

/** The number that a text of a form or a query stands for. @throws invalid_request */
export function parseInteger(text: string, param: string): number {
  if (!/^[+-]?\d{1,300}$/.test(text)) throw wrongType(param, 'an integer');
  return Number(text);
}

/** The value of an integer field that must lie within bounds, both included. */
export function withinBounds(
  value: number,
  param: string,
  { min, max }: { min: number; max: number },
): number {
  if (value < min) {
    const message = `Invalid '${param}': expected an integer of at least ${min}, got ${value}.`;
    throw fault('integer_below_min_value', param, message);
  }
  if (value > max) {
    const message = `Invalid '${param}': expected an integer of at most ${max}, got ${value}.`;
    throw fault('integer_above_max_value', param, message);
  }
  return value;
}

/** Life of a file, in seconds (contract §1.1, §2.1). */
export const EXPIRES_AFTER_SEC = { min: 3_600, max: 2_592_000 } as const;
