import { isUtf8 } from 'node:buffer';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { createJsonGuard } from '../../core/openai/json-check';
import { isJsonObject } from '../../core/openai/json-object';

/** Far more than the parameters of any request need. */
const LIMITS = { maxDepth: 1_000, maxTokens: 400_000 };
const faultOf = createJsonGuard(LIMITS);

/**
 * Parses a body that `addBodyParsers` collected as a JSON object
 * (docs/design/api-contract.md#json-bodies). An empty body is an empty object, so that the caller can
 * name the first missing field.
 *
 * @throws invalid_request without a code; the error that a parser left in place of the body
 */
export function parseJsonBody(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined || body === null) return {};
  if (isNightshiftError(body)) throw body;
  if (!Buffer.isBuffer(body)) throw unparsable();
  if (body.length === 0) return {};
  // JSON must be UTF-8 (RFC 8259). Decoding would silently replace other bytes.
  if (!isUtf8(body)) throw unparsable();
  const overLimit = faultOf(body);
  if (overLimit !== null && overLimit !== 'invalid') throw tooComplex();
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw unparsable(cause);
  }
  if (!isJsonObject(value)) {
    throw new NightshiftError('invalid_request', 'The body of the request must be a JSON object.');
  }
  return value;
}

function tooComplex(): NightshiftError {
  const message =
    'The JSON body of your request is nested too deeply or has too many members. ' +
    'Send only the parameters of this endpoint.';
  return new NightshiftError('invalid_request', message);
}

function unparsable(cause?: unknown): NightshiftError {
  const message =
    'We could not parse the JSON body of your request. The API expects an object of valid JSON.';
  return new NightshiftError('invalid_request', message, cause === undefined ? {} : { cause });
}
