import { NightshiftError } from '../core/errors';
import { fnv32a } from '../core/names/fnv';
import { isJsonObject } from '../core/openai/json-object';

/** A parsed request to a model endpoint, with what every endpoint requires. */
export interface ModelRequest {
  readonly endpoint: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly model: string;
  /** Hash of the body. It determines the answer, so equal bodies get equal answers. */
  readonly seed: number;
  /** How to send the answer as events; `null` if it is sent as a whole. */
  readonly stream: StreamOptions | null;
  readonly fault: RequestedFault;
}

/** What a request with `stream: true` asks for in `stream_options`. */
export interface StreamOptions {
  /** Whether the last event before the end reports the usage. */
  readonly includeUsage: boolean;
}

const STREAMING_ENDPOINTS: ReadonlySet<string> = new Set([
  '/v1/chat/completions',
  '/v1/completions',
]);

/**
 * The fault that a request asks for with its body member `simulate`:
 * `{ "status": 503, "delay_ms": 2000, "retry_after_sec": 1, "times": 2, "drop": true }`.
 */
export interface RequestedFault {
  /** Answers with this status and an error body; 200 answers normally. */
  readonly status: number | null;
  /** Delay in ms, instead of the configured latency. */
  readonly delayMs: number | null;
  readonly retryAfterSec: number | null;
  /** How many tries of the request (identified by `x-request-id`) have the fault; `null` means all. */
  readonly times: number | null;
  /** Closes the connection instead of answering. */
  readonly drop: boolean;
}

const NO_FAULT: RequestedFault = {
  status: null,
  delayMs: null,
  retryAfterSec: null,
  times: null,
  drop: false,
};

/** Parses a body. @throws invalid_request for what OpenAI refuses, and for an invalid `simulate` */
export function parseModelRequest(endpoint: string, bytes: Buffer): ModelRequest {
  const body = parseObject(bytes);
  const model = body['model'] ?? (endpoint === '/v1/moderations' ? 'omni-moderation-latest' : null);
  if (typeof model !== 'string' || model === '') {
    throw invalid('model', 'you must provide a model parameter');
  }
  const stream = parseStream(endpoint, body);
  return {
    endpoint,
    body,
    model,
    seed: fnv32a(bytes),
    stream,
    fault: parseFault(body['simulate']),
  };
}

function parseStream(
  endpoint: string,
  body: Readonly<Record<string, unknown>>,
): StreamOptions | null {
  const { stream, stream_options: options } = body;
  const isGiven = options !== undefined && options !== null;
  if (stream !== true) {
    if (isGiven)
      throw invalid('stream_options', 'stream_options is only allowed with stream: true');
    return null;
  }
  if (!STREAMING_ENDPOINTS.has(endpoint)) {
    throw invalid('stream', `the simulator does not stream ${endpoint}: leave out stream`);
  }
  if (isGiven && !isJsonObject(options)) {
    throw invalid('stream_options', 'stream_options must be an object');
  }
  return { includeUsage: isGiven && options['include_usage'] === true };
}

function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new NightshiftError('invalid_request', 'could not parse the JSON body of your request');
  }
  if (isJsonObject(value)) return value;
  throw new NightshiftError('invalid_request', 'the body must be a JSON object');
}

function parseFault(value: unknown): RequestedFault {
  if (value === undefined || value === null) return NO_FAULT;
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
  fault: Readonly<Record<string, unknown>>,
  member: string,
  min: number,
  max: number,
): number | null {
  const value = fault[member];
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) {
    return value;
  }
  throw invalid('simulate', `simulate.${member} must be a whole number from ${min} to ${max}`);
}

/** An error about one parameter, as OpenAI reports it. */
export function invalid(param: string | null, message: string): NightshiftError {
  return new NightshiftError('invalid_request', message, param === null ? {} : { param });
}
