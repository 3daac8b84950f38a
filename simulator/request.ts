import { NightshiftError } from '../core/errors';
import { isJsonObject } from '../core/openai/json-object';
import { hashOf } from './words';

/** A request to a model endpoint, parsed and checked for what every endpoint needs. */
export interface ModelRequest {
  readonly endpoint: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly model: string;
  /** Decides everything in the answer: equal bodies get equal answers. */
  readonly seed: number;
  readonly wish: RequestedFault;
}

/**
 * The body member `simulate`, by which a request asks for a fault:
 * `{ "status": 503, "delay_ms": 2000, "retry_after_sec": 1, "times": 2, "drop": true }`.
 */
export interface RequestedFault {
  /** Answer this status with an error body; 200 answers as usual. */
  readonly status: number | null;
  /** Wait this long instead of the configured latency, ms. */
  readonly delayMs: number | null;
  readonly retryAfterSec: number | null;
  /** Only the first tries of a request (known by `x-request-id`) are disturbed; null: all of them. */
  readonly times: number | null;
  /** Close the connection instead of answering. */
  readonly drop: boolean;
}

const NO_WISH: RequestedFault = {
  status: null,
  delayMs: null,
  retryAfterSec: null,
  times: null,
  drop: false,
};

/** @throws invalid_request for what OpenAI's endpoints refuse, and for a malformed `simulate`. */
export function parseModelRequest(endpoint: string, bytes: Buffer): ModelRequest {
  const body = parseObject(bytes);
  const model = body['model'] ?? (endpoint === '/v1/moderations' ? 'omni-moderation-latest' : null);
  if (typeof model !== 'string' || model === '') {
    throw invalid('model', 'you must provide a model parameter');
  }
  if (body['stream'] === true) throw invalid('stream', 'streaming is not simulated');
  return { endpoint, body, model, seed: hashOf(bytes), wish: parseWish(body['simulate']) };
}

function parseObject(bytes: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new NightshiftError('invalid_request', 'could not parse the JSON body of your request');
  }
  if (isJsonObject(value)) return value;
  throw new NightshiftError('invalid_request', 'the body must be a JSON object');
}

function parseWish(value: unknown): RequestedFault {
  if (value === undefined || value === null) return NO_WISH;
  if (!isJsonObject(value)) throw invalid('simulate', 'simulate must be an object');
  const known = ['status', 'delay_ms', 'retry_after_sec', 'times', 'drop'];
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw invalid('simulate', `unknown member simulate.${unknown}`);
  return {
    status: wholeNumber(value, 'status', 200, 599),
    delayMs: wholeNumber(value, 'delay_ms', 0, 3_600_000),
    retryAfterSec: wholeNumber(value, 'retry_after_sec', 0, 86_400),
    times: wholeNumber(value, 'times', 0, 1_000_000),
    drop: value['drop'] === true,
  };
}

function wholeNumber(
  wish: Record<string, unknown>,
  member: string,
  min: number,
  max: number,
): number | null {
  const value = wish[member];
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw invalid('simulate', `simulate.${member} must be a whole number from ${min} to ${max}`);
}

/** The error of a parameter, as OpenAI reports it. */
export function invalid(param: string, message: string): NightshiftError {
  return new NightshiftError('invalid_request', message, { param });
}
