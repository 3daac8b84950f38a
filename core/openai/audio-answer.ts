import { NO_USAGE } from '../batch/counts';
import { embedAnswer } from './answer';
import { asciiJsonString } from './ascii-json';
import type { EmbeddedAnswer } from './embedded-answer';

/** An answer of an audio endpoint. */
export interface AudioAnswer {
  readonly status: number;
  /** Its header; null if the answer has none. */
  readonly contentType: string | null;
  readonly body: Buffer;
}

/** What the request says about its answer, if that is audio. */
export interface RequestedSpeech {
  readonly model: string;
  /** `response_format`; null if the request names none. */
  readonly format: string | null;
}

/** `text`, `srt` and `vtt`. OpenAI sends all of them as `text/plain`, other servers do not. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  'text/plain',
  'text/vtt',
  'text/srt',
  'application/x-subrip',
]);

/** What servers call the formats of speech. */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
  ['audio/opus', 'opus'],
  ['audio/ogg', 'opus'],
  ['audio/aac', 'aac'],
  ['audio/flac', 'flac'],
  ['audio/x-flac', 'flac'],
  ['audio/wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/vnd.wave', 'wav'],
  ['audio/pcm', 'pcm'],
  ['audio/l16', 'pcm'],
]);
const DEFAULT_FORMAT = 'mp3';
/** The type that OpenAI documents for speech. */
const ANY_TYPE = 'application/octet-stream';

/**
 * Embeds the answer to a transcription or translation. Text becomes `{"text": …}`, because a result line is JSON;
 * everything else is embedded as it is (docs/design/recordings.md#answers).
 */
export function embedTranscript({ status, contentType, body }: AudioAnswer): EmbeddedAnswer {
  if (!isSuccess(status) || !TEXT_TYPES.has(typeOf(contentType))) return embedAnswer(status, body);
  const text = body.toString('utf8');
  // Bytes that are not UTF-8 are no text. They become an `invalid_response` below.
  if (!Buffer.from(text).equals(body)) return embedAnswer(status, body);
  const json = Buffer.from(`{"text":${asciiJsonString(text)}}`, 'latin1');
  return { ok: true, json, usage: NO_USAGE, model: null };
}

/**
 * Embeds the answer to a request for speech. Audio becomes an object with its bytes in base64, everything else is
 * embedded as it is (docs/design/recordings.md#answers). Null if the base64 text is longer than `maxBytes`.
 */
export function embedSpeech(
  { status, contentType, body }: AudioAnswer,
  { model, format }: RequestedSpeech,
  maxBytes: number,
): EmbeddedAnswer | null {
  const type = typeOf(contentType);
  const isAudio = type.startsWith('audio/') || type === ANY_TYPE;
  if (!isSuccess(status) || !isAudio) return embedAnswer(status, body);
  if (Math.ceil(body.length / 3) * 4 > maxBytes) return null;
  const name = FORMATS.get(type) ?? format ?? DEFAULT_FORMAT;
  const head =
    `{"object":"audio.speech","model":${asciiJsonString(model)},"format":${asciiJsonString(name)},` +
    `"bytes":${body.length},"audio":"`;
  const json = Buffer.from(`${head}${body.toString('base64')}"}`, 'latin1');
  return { ok: true, json, usage: NO_USAGE, model };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

/** The media type without its parameters, lower-case. */
function typeOf(contentType: string | null): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}
