import { NightshiftError } from '../../errors';

/** How a session ends turns by itself; null: only the client does. */
export interface ServerVad {
  readonly threshold: number;
  readonly prefixMs: number;
  readonly silenceMs: number;
}

/** How the audio of a session is encoded. */
export interface AudioFormat {
  readonly type: 'audio/pcm' | 'audio/pcmu' | 'audio/pcma';
  /** Samples per second. */
  readonly rate: number;
}

/** What a client sets with `session.update`. */
export interface SessionSettings {
  readonly format: AudioFormat;
  /** Null until the client names one. */
  readonly model: string | null;
  /** ISO 639-1; empty if the client did not say. */
  readonly language: string;
  readonly prompt: string;
  /** Whether the client wants `transcript.partial`. */
  readonly partials: boolean;
  /** Undefined: on if the model can do it. */
  readonly turnDetection: ServerVad | null | undefined;
}

/** The settings of a session whose client has not set any. */
export const DEFAULT_SETTINGS: SessionSettings = {
  format: { type: 'audio/pcm', rate: 24_000 },
  model: null,
  language: '',
  prompt: '',
  partials: false,
  turnDetection: undefined,
};

/** OpenAI's defaults. */
export const DEFAULT_VAD: ServerVad = { threshold: 0.5, prefixMs: 300, silenceMs: 200 };

const PHONE_RATE = 8_000;
const MAX_PROMPT_CHARS = 16_384;
const MAX_VAD_MS = 60_000;

/** Bytes of one millisecond of audio. */
export function bytesPerMs({ type, rate }: AudioFormat): number {
  return (rate * bytesPerSample(type)) / 1_000;
}

/** 2 for PCM, which has 16 bits; 1 for the telephone's encodings. */
export function bytesPerSample(type: AudioFormat['type']): number {
  return type === 'audio/pcm' ? 2 : 1;
}

/**
 * The settings after a `session.update`: what it does not name stays. @throws invalid_request with the path of the
 * member at fault
 */
export function updatedSettings(session: unknown, before: SessionSettings): SessionSettings {
  const path = 'session';
  const given = members(session, path, ['type', 'audio', 'include']);
  if (given['type'] !== 'transcription') {
    throw fault('session.type', "Only sessions of type 'transcription' are supported.");
  }
  const { include } = given;
  if (
    include !== undefined &&
    include !== null &&
    !(Array.isArray(include) && include.length === 0)
  ) {
    throw fault('session.include', 'Nothing can be included.');
  }
  if (given['audio'] === undefined) return before;
  const audio = members(given['audio'], 'session.audio', ['input']);
  return audio['input'] === undefined ? before : withInput(audio['input'], before);
}

const INPUT = 'session.audio.input';

function withInput(input: unknown, before: SessionSettings): SessionSettings {
  const known = ['format', 'transcription', 'turn_detection', 'noise_reduction'];
  const given = members(input, INPUT, known);
  const { format, transcription, turn_detection: vad, noise_reduction: noise } = given;
  if (noise !== undefined && noise !== null) {
    throw fault(`${INPUT}.noise_reduction`, 'Noise reduction is not supported: send null.');
  }
  return {
    ...before,
    ...(format === undefined ? {} : { format: formatOf(format) }),
    ...(transcription === undefined ? {} : withTranscription(transcription, before)),
    ...(vad === undefined ? {} : { turnDetection: vad === null ? null : vadOf(vad) }),
  };
}

function formatOf(value: unknown): AudioFormat {
  const path = `${INPUT}.format`;
  const { type, rate } = members(value, path, ['type', 'rate']);
  if (type === 'audio/pcm') {
    return {
      type,
      rate: integer(rate ?? DEFAULT_SETTINGS.format.rate, `${path}.rate`, [8_000, 48_000]),
    };
  }
  if (type !== 'audio/pcmu' && type !== 'audio/pcma') {
    throw fault(`${path}.type`, 'The type must be audio/pcm, audio/pcmu or audio/pcma.');
  }
  if (rate !== undefined && rate !== PHONE_RATE) {
    throw fault(`${path}.rate`, `The rate of ${type} is always ${PHONE_RATE}.`);
  }
  return { type, rate: PHONE_RATE };
}

function withTranscription(value: unknown, before: SessionSettings): Partial<SessionSettings> {
  const path = `${INPUT}.transcription`;
  const given = members(value, path, ['model', 'language', 'prompt', 'partials']);
  const { model = before.model, language = before.language, prompt = before.prompt } = given;
  const { partials = before.partials } = given;
  if (model !== null && (typeof model !== 'string' || model === '')) {
    throw fault(`${path}.model`, 'The model must be the name of a model.');
  }
  if (typeof (language ?? '') !== 'string' || !/^([a-z]{2,3})?$/.test((language ?? '') as string)) {
    throw fault(`${path}.language`, 'The language must be an ISO 639-1 code, such as en.');
  }
  if (typeof (prompt ?? '') !== 'string' || ((prompt ?? '') as string).length > MAX_PROMPT_CHARS) {
    throw fault(
      `${path}.prompt`,
      `The prompt must be a text of at most ${MAX_PROMPT_CHARS} characters.`,
    );
  }
  if (typeof partials !== 'boolean') throw fault(`${path}.partials`, 'It must be true or false.');
  return {
    model,
    language: (language ?? '') as string,
    prompt: (prompt ?? '') as string,
    partials,
  };
}

function vadOf(value: unknown): ServerVad {
  const path = `${INPUT}.turn_detection`;
  const given = members(value, path, [
    ...['type', 'threshold', 'prefix_padding_ms', 'silence_duration_ms'],
    // They concern the answers of a model, which transcription sessions do not have.
    ...['create_response', 'interrupt_response', 'idle_timeout_ms'],
  ]);
  if (given['type'] !== 'server_vad') {
    throw fault(`${path}.type`, "The turn detection must be null or of type 'server_vad'.");
  }
  const { threshold = DEFAULT_VAD.threshold } = given;
  if (typeof threshold !== 'number' || !(threshold >= 0 && threshold <= 1)) {
    throw fault(`${path}.threshold`, 'The threshold must be a number between 0 and 1.');
  }
  const ms = (name: string, usual: number) =>
    integer(given[name] ?? usual, `${path}.${name}`, [0, MAX_VAD_MS]);
  return {
    threshold,
    prefixMs: ms('prefix_padding_ms', DEFAULT_VAD.prefixMs),
    silenceMs: ms('silence_duration_ms', DEFAULT_VAD.silenceMs),
  };
}

function integer(value: unknown, path: string, [least, most]: readonly [number, number]): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
    return value as number;
  }
  throw fault(path, `It must be an integer between ${least} and ${most}.`);
}

/** The members of an object that may have these only. */
function members(value: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw fault(path, 'It must be an object.');
  }
  const stranger = Object.keys(value).find((name) => !known.includes(name));
  if (stranger !== undefined) {
    const param = `${path}.${stranger.slice(0, 100)}`;
    throw fault(param, `Unknown parameter: '${param}'.`, 'unknown_parameter');
  }
  return value as Record<string, unknown>;
}

function fault(param: string, message: string, apiCode = 'invalid_value'): NightshiftError {
  return new NightshiftError('invalid_request', message, { param, apiCode });
}

/** The object `session` of `session.created` and `session.updated`. */
export function sessionObject(
  settings: SessionSettings,
  { id, expiresAtSec, vad }: { id: string; expiresAtSec: number; vad: ServerVad | null },
): object {
  const { format, model, language, prompt, partials } = settings;
  const transcription = {
    model,
    ...(language === '' ? {} : { language }),
    prompt,
    ...(partials ? { partials } : {}),
  };
  const turnDetection = vad && {
    type: 'server_vad',
    threshold: vad.threshold,
    prefix_padding_ms: vad.prefixMs,
    silence_duration_ms: vad.silenceMs,
  };
  return {
    type: 'transcription',
    object: 'realtime.transcription_session',
    id,
    expires_at: expiresAtSec,
    audio: {
      input: {
        format: format.type === 'audio/pcm' ? format : { type: format.type },
        transcription: model === null ? null : transcription,
        noise_reduction: null,
        turn_detection: turnDetection,
      },
    },
  };
}
