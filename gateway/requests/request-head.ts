import { isUtf8 } from 'node:buffer';
import { NightshiftError } from '../../core/errors';
import { createJsonCheck } from '../../core/openai/json-check';
import { OPEN_BRACE, skipBlanks, valueEnd } from '../../core/openai/json-bytes';
import { memberStarts } from '../../core/openai/json-keys';
import type { PromptBytes } from '../../core/openai/prompt-bytes';

/** What the gateway reads of a request's body. Nothing is changed in it. */
export interface RequestHead {
  readonly model: string;
  readonly isStream: boolean;
  /** The client's own limit on output tokens; null if it gave none. */
  readonly maxTokens: number | null;
  readonly serviceTier: string | null;
  /** Where the prompt is in the body, in the order in which a model reads it. */
  readonly prompt: PromptBytes;
  readonly promptBytes: number;
}

/** Deeper or larger bodies would cost a model server's parser more than their prompt is worth. */
const checkJson = createJsonCheck({ maxDepth: 10_000, maxTokens: 10_000_000 });

const TOKEN_LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
const PROMPT = ['tools', 'instructions', 'messages', 'input', 'prompt'];
const NAMES = ['model', 'stream', 'service_tier', ...TOKEN_LIMITS, ...PROMPT].map((name) =>
  Buffer.from(name),
);
/** Places in {@link NAMES}. */
const [MODEL, STREAM, SERVICE_TIER, FIRST_LIMIT] = [0, 1, 2, 3];
const FIRST_OF_PROMPT = FIRST_LIMIT + TOKEN_LIMITS.length;

/**
 * Reads the head of a body in one pass, without building objects. The last of repeated members counts, as with
 * `JSON.parse`.
 *
 * @param fallbackModel the model of a body without one; null if it must have one
 * @throws invalid_request if the body is not a JSON object, or names no model
 */
export function readRequestHead(body: Buffer, fallbackModel: string | null): RequestHead {
  const open = openingBrace(body);
  const starts = memberStarts(body, open, NAMES);
  const tier = parsedAt(body, starts[SERVICE_TIER]);
  const ranges = promptRanges(body, starts);
  return {
    model: modelOf(parsedAt(body, starts[MODEL]), fallbackModel),
    isStream: parsedAt(body, starts[STREAM]) === true,
    maxTokens: leastLimit(body, starts),
    serviceTier: typeof tier === 'string' ? tier : null,
    prompt: { bytes: body, ranges },
    promptBytes: lengthOf(ranges),
  };
}

/** Longer scalar values have no meaning to us; a long text would be copied for nothing. */
const MAX_VALUE_BYTES = 1_024;

function openingBrace(body: Buffer): number {
  const fault = isUtf8(body) ? checkJson(body) : 'invalid';
  if (fault === 'invalid') {
    const message =
      'We could not parse the JSON body of your request. The API expects an object of valid JSON.';
    throw new NightshiftError('invalid_request', message);
  }
  if (fault !== null) {
    const message = 'The JSON body of your request is nested too deeply or has too many members.';
    throw new NightshiftError('invalid_request', message);
  }
  const open = skipBlanks(body, 0);
  if (body[open] === OPEN_BRACE) return open;
  throw new NightshiftError('invalid_request', 'The body of the request must be a JSON object.');
}

function parsedAt(body: Buffer, start: number | null = null): unknown {
  if (start === null) return undefined;
  const end = valueEnd(body, start);
  if (end - start > MAX_VALUE_BYTES) return null;
  return JSON.parse(body.toString('utf8', start, end));
}

function modelOf(value: unknown, fallback: string | null): string {
  if (typeof value === 'string' && value !== '') return value;
  if (value === undefined && fallback !== null) return fallback;
  const message =
    value === undefined
      ? 'You must provide a model parameter.'
      : `The parameter model must be the name of a model, a text of 1 to ${MAX_VALUE_BYTES} bytes.`;
  throw new NightshiftError('invalid_request', message, { param: 'model' });
}

/** The least limit on output tokens that the body gives; null if it gives none. */
function leastLimit(body: Buffer, starts: readonly (number | null)[]): number | null {
  let least: number | null = null;
  for (let i = FIRST_LIMIT; i < FIRST_OF_PROMPT; i++) {
    const value = parsedAt(body, starts[i]);
    if (typeof value === 'number') least = Math.max(0, Math.min(value, least ?? value));
  }
  return least;
}

/** Beginnings and ends of the members of the prompt, in turn. */
function promptRanges(body: Buffer, starts: readonly (number | null)[]): number[] {
  const ranges: number[] = [];
  for (let i = FIRST_OF_PROMPT; i < starts.length; i++) {
    const start = starts[i] ?? null;
    if (start !== null) ranges.push(start, valueEnd(body, start));
  }
  return ranges;
}

function lengthOf(ranges: readonly number[]): number {
  let bytes = 0;
  for (let i = 0; i + 1 < ranges.length; i += 2) bytes += (ranges[i + 1] ?? 0) - (ranges[i] ?? 0);
  return bytes;
}
