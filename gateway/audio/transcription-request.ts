import type { AudioTask } from '../../core/audio/audio-need';
import { TRANSCRIPTION_FORMATS, type TranscriptionFormat } from '../../core/audio/transcription';
import { NightshiftError } from '../../core/errors';

/** What a client asks for besides the recording (docs/design/audio.md#fields). */
export interface TranscriptionRequest {
  readonly task: TranscriptionTask;
  readonly model: string;
  /** ISO 639-1; empty for any. */
  readonly language: string;
  readonly prompt: string;
  readonly temperature: number;
  readonly format: TranscriptionFormat;
  /** Times of words, and of segments, in `verbose_json`. */
  readonly hasWords: boolean;
  readonly hasSegments: boolean;
  /** Whether the answer is useless without segments. */
  readonly needsSegments: boolean;
  readonly isStream: boolean;
  /** Whether post-processing applies. */
  readonly isPostProcessed: boolean;
}

/** The tasks whose recording is in a form. */
export type TranscriptionTask = Exclude<AudioTask, 'speak'>;

/** Fields of a form by name. */
export type FormFields = ReadonlyMap<string, readonly string[]>;

const COMMON = ['model', 'prompt', 'response_format', 'temperature', 'itn'];
const GRANULARITIES = ['timestamp_granularities[]', 'timestamp_granularities'];
const KNOWN: Readonly<Record<TranscriptionTask, ReadonlySet<string>>> = {
  transcribe: new Set([...COMMON, 'language', 'stream', ...GRANULARITIES]),
  translate: new Set(COMMON),
};
/** Options of OpenAI's route that no audio worker has. */
const UNSUPPORTED = /^(?:chunking_strategy|include|known_speaker_names|known_speaker_references)$/;
const MAX_MODEL_BYTES = 1_024;
const LANGUAGE = /^[a-z]{2,3}$/;
const DECIMAL = /^\d{1,3}(?:\.\d{0,20})?$|^\.\d{1,20}$/;

/**
 * The model that a form names.
 *
 * @throws invalid_request if it names none
 */
export function modelOf(fields: FormFields): string {
  const model = single(fields, 'model');
  if (model === null) {
    throw invalid('model', 'You must provide a model parameter.', 'missing_required_parameter');
  }
  if (Buffer.byteLength(model) <= MAX_MODEL_BYTES) return model;
  throw invalid('model', `The name of a model has at most ${MAX_MODEL_BYTES} bytes.`);
}

/** Reads the fields of a request for an audio worker. @throws invalid_request, with the field as `param` */
export function readTranscriptionRequest(
  task: TranscriptionTask,
  fields: FormFields,
): TranscriptionRequest {
  for (const name of fields.keys()) checkName(task, name);
  const format = formatOf(single(fields, 'response_format') ?? 'json');
  const granularities = granularitiesOf(fields, format);
  const isStream = boolean(fields, 'stream') ?? false;
  if (isStream && format !== 'json' && format !== 'text') {
    const message = `The format ${format} cannot be streamed: choose json or text.`;
    throw invalid('response_format', message);
  }
  return {
    task,
    model: modelOf(fields),
    language: languageOf(single(fields, 'language') ?? ''),
    prompt: single(fields, 'prompt') ?? '',
    temperature: temperatureOf(single(fields, 'temperature') ?? '0'),
    format,
    hasWords: granularities.has('word'),
    hasSegments: granularities.has('segment'),
    needsSegments: format === 'srt' || format === 'vtt' || asksForSegments(fields),
    isStream,
    isPostProcessed: boolean(fields, 'itn') ?? true,
  };
}

function checkName(task: TranscriptionTask, name: string): void {
  if (KNOWN[task].has(name)) return;
  const plain = name.replace(/\[\]$/, '');
  if (task === 'transcribe' && UNSUPPORTED.test(plain)) {
    throw invalid(plain, `The option ${plain} is not supported: leave it out.`);
  }
  const message = `Unknown parameter: '${shown(name)}'.`;
  throw invalid(shown(name), message, 'unknown_parameter');
}

function formatOf(value: string): TranscriptionFormat {
  const format = TRANSCRIPTION_FORMATS.find((one) => one === value);
  if (format !== undefined) return format;
  throw invalid('response_format', choice('response_format', value, TRANSCRIPTION_FORMATS));
}

/** `verbose_json` has segments unless the client chooses. */
function granularitiesOf(fields: FormFields, format: TranscriptionFormat): ReadonlySet<string> {
  const param = 'timestamp_granularities';
  const given = GRANULARITIES.flatMap((name) => fields.get(name) ?? []);
  if (given.length > 0 && format !== 'verbose_json') {
    const message = `The option ${param} needs the response_format verbose_json.`;
    throw invalid(param, message);
  }
  for (const value of given) {
    if (value !== 'word' && value !== 'segment') {
      throw invalid(param, choice(param, value, ['word', 'segment']));
    }
  }
  return new Set(given.length > 0 || format !== 'verbose_json' ? given : ['segment']);
}

function asksForSegments(fields: FormFields): boolean {
  return GRANULARITIES.some((name) => fields.get(name)?.includes('segment') === true);
}

function languageOf(value: string): string {
  const language = value.toLowerCase();
  if (language === '' || LANGUAGE.test(language)) return language;
  const message = `The language ${quoted(value)} is not a code of ISO 639-1, such as en.`;
  throw invalid('language', message);
}

function temperatureOf(value: string): number {
  const temperature = DECIMAL.test(value) ? Number(value) : NaN;
  if (temperature >= 0 && temperature <= 1) return temperature;
  throw invalid('temperature', `The temperature must be between 0 and 1; it is ${quoted(value)}.`);
}

function boolean(fields: FormFields, name: string): boolean | null {
  const value = single(fields, name);
  if (value === null) return null;
  const lower = value.toLowerCase();
  if (lower === 'true' || lower === '1') return true;
  if (lower === 'false' || lower === '0') return false;
  throw invalid(name, choice(name, value, ['true', 'false']));
}

/** The one value of a field; null if it is missing or empty. */
function single(fields: FormFields, name: string): string | null {
  const [value = '', another] = fields.get(name) ?? [];
  if (another !== undefined) throw invalid(name, `The form has more than one field '${name}'.`);
  return value === '' ? null : value;
}

function choice(param: string, value: string, values: readonly string[]): string {
  return `The parameter ${param} cannot be ${quoted(value)}. Choose one of: ${values.join(', ')}.`;
}

const SHOWN_CHARS = 100;

function shown(text: string): string {
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}

function quoted(text: string): string {
  return JSON.stringify(shown(text));
}

function invalid(param: string, message: string, apiCode = 'invalid_value'): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode });
}
