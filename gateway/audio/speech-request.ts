import { NightshiftError } from '../../core/errors';
import { isJsonObject } from '../../core/openai/json-object';

/** Formats of speech, by OpenAI's names, and their media types. */
export const SPEECH_TYPES = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const;

/** A format of speech. */
export type SpeechFormat = keyof typeof SPEECH_TYPES;

/** What a client wants spoken (docs/design/audio.md#speech). */
export interface SpeechWanted {
  readonly model: string;
  readonly input: string;
  readonly voice: string;
  readonly instructions: string;
  readonly format: SpeechFormat;
  readonly speed: number;
  readonly isEvents: boolean;
}

type Members = Readonly<Record<string, unknown>>;

const KNOWN: ReadonlySet<string> = new Set([
  ...['model', 'input', 'voice', 'instructions', 'response_format', 'speed', 'stream_format'],
]);
const FORMATS = Object.keys(SPEECH_TYPES) as SpeechFormat[];
const STREAM_FORMATS = ['audio', 'sse'];
const SLOWEST = 0.25;
const FASTEST = 4;

/**
 * Reads the body of a speech request, which is JSON of bounded depth and names a model.
 *
 * @throws invalid_request with the parameter that is wrong
 */
export function readSpeechRequest(body: Buffer, maxInputCharacters: number): SpeechWanted {
  const members: unknown = JSON.parse(body.toString('utf8'));
  if (!isJsonObject(members)) throw invalid('body', 'The body must be a JSON object.');
  const unknown = Object.keys(members).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) {
    const name = unknown.slice(0, 64);
    throw invalid(name, `Unknown parameter: '${name}'.`, 'unknown_parameter');
  }
  const { stream_format: streamFormat = 'audio' } = members;
  if (!STREAM_FORMATS.includes(streamFormat as string)) {
    throw invalid('stream_format', choice('stream_format', STREAM_FORMATS));
  }
  return {
    model: text(members, 'model'),
    input: inputOf(members, maxInputCharacters),
    voice: voiceOf(members),
    instructions: members['instructions'] == null ? '' : text(members, 'instructions'),
    format: formatOf(members['response_format'] ?? 'mp3'),
    speed: speedOf(members['speed'] ?? 1),
    isEvents: streamFormat === 'sse',
  };
}

function inputOf(members: Members, maxCharacters: number): string {
  const input = text(members, 'input');
  const isShort = input.length <= maxCharacters;
  if (isShort || Array.from(input).length <= maxCharacters) return input;
  throw invalid('input', `The input may have at most ${maxCharacters} characters.`);
}

/** A name, or an object with an id. */
function voiceOf(members: Members): string {
  const { voice } = members;
  return isJsonObject(voice) ? text(voice, 'id', 'voice') : text(members, 'voice');
}

function formatOf(value: unknown): SpeechFormat {
  const format = FORMATS.find((one) => one === value);
  if (format !== undefined) return format;
  throw invalid('response_format', choice('response_format', FORMATS));
}

function speedOf(value: unknown): number {
  if (typeof value === 'number' && value >= SLOWEST && value <= FASTEST) return value;
  throw invalid('speed', `The speed must be a number between ${SLOWEST} and ${FASTEST}.`);
}

function text(members: Members, name: string, param = name): string {
  const value = members[name];
  if (typeof value === 'string' && value !== '') return value;
  const message =
    value === undefined || value === null
      ? `Missing required parameter: '${param}'.`
      : `The parameter ${param} must be a text that is not empty.`;
  throw invalid(param, message);
}

function choice(name: string, values: readonly string[]): string {
  return `The ${name} must be one of: ${values.join(', ')}.`;
}

function invalid(param: string, message: string, apiCode = 'invalid_value'): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode });
}
