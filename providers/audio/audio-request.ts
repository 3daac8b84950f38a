import { isJsonObject } from '../../core/openai/json-object';
import { TRANSCRIPTION_FORMATS, type TranscriptionView } from '../../core/audio/transcription';
import type { EncodedLine } from '../provider';

/** A request for a transcription, as far as recognisers can express it. */
export interface AudioRequest {
  /** The audio: an uploaded file, or the bytes themselves. */
  readonly source: AudioSource;
  /** ISO 639-1, such as `en`, or a tag with a region, such as `en-GB`; null to recognise the language. */
  readonly language: string | null;
  readonly view: TranscriptionView;
}

/** Where the audio of a line is. */
export type AudioSource =
  | { readonly kind: 'file'; readonly fileId: string }
  | { readonly kind: 'data'; readonly base64: string; readonly filename: string };

/** What {@link readAudioRequest} makes of a body. */
export type AudioReading =
  | { readonly kind: 'request'; readonly request: AudioRequest }
  | Extract<EncodedLine, { readonly kind: 'refused' }>;

type Members = Readonly<Record<string, unknown>>;

const DATA_URL = /^data:[^,]*;base64,/;
/** Members that change nothing that is paid for, or that say what is so anyway. */
const IGNORED: ReadonlySet<string> = new Set(['model', 'user', 'metadata', 'itn']);
const READ: ReadonlySet<string> = new Set([
  'file_id',
  'file_data',
  'filename',
  'language',
  'response_format',
  'timestamp_granularities',
]);

/**
 * Reads the body of a line for `/v1/audio/transcriptions`. Strict: a member that no recogniser of a provider
 * takes, such as `prompt`, refuses the line, unless `dropParams` is set (docs/design/providers.md#recordings).
 */
export function readAudioRequest(body: Buffer, dropParams: boolean): AudioReading {
  const members = parsed(body);
  const source = sourceOf(members);
  if (source === null)
    return refused('file_id', 'needs either file_id, or file_data with filename');
  const view = viewOf(members);
  if (view === null) return refused('response_format', 'is not a format of transcriptions');
  const { language = null } = members;
  if (
    language !== null &&
    (typeof language !== 'string' || !/^[a-z]{2,3}(-[A-Z]{2})?$/.test(language))
  ) {
    return refused('language', 'must be an ISO 639-1 code, such as en');
  }
  const unknown = Object.keys(members).find((name) => !isExpressible(name, members[name]));
  if (unknown !== undefined && !dropParams) return refused(unknown, 'cannot be expressed');
  return { kind: 'request', request: { source, language, view } };
}

function isExpressible(name: string, value: unknown): boolean {
  if (READ.has(name) || IGNORED.has(name) || value === null) return true;
  if (name === 'stream') return value === false;
  if (name === 'temperature') return value === 0;
  return name === 'prompt' && value === '';
}

function sourceOf(members: Members): AudioSource | null {
  const { file_id: fileId = null, file_data: data = null, filename = null } = members;
  if ((fileId === null) === (data === null)) return null;
  if (typeof fileId === 'string') return { kind: 'file', fileId };
  if (typeof data !== 'string' || typeof filename !== 'string') return null;
  return { kind: 'data', base64: data.replace(DATA_URL, ''), filename };
}

function viewOf(members: Members): TranscriptionView | null {
  const { response_format: said = null, timestamp_granularities: granularities = null } = members;
  const format = TRANSCRIPTION_FORMATS.find((one) => one === (said ?? 'json'));
  if (format === undefined) return null;
  const asked = Array.isArray(granularities) ? granularities : ['segment'];
  return { format, hasSegments: asked.includes('segment'), hasWords: asked.includes('word') };
}

function parsed(body: Buffer): Members {
  const value = JSON.parse(body.toString('utf8')) as unknown;
  return isJsonObject(value) ? value : {};
}

function refused(param: string, why: string): Extract<AudioReading, { kind: 'refused' }> {
  return { kind: 'refused', param, message: `\`${param}\` ${why}.` };
}
