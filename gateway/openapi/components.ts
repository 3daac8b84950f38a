import { TRANSCRIPTION_FORMATS } from '../../core/audio/transcription';
import { DROP_CODES } from '../../core/dispatch/drop-codes';

type Json = Readonly<Record<string, unknown>>;

const text = { type: 'string' };
const nullableText = { type: ['string', 'null'] };

const form = { type: 'object', required: ['file', 'model'] };
const formFields = {
  file: { ...text, format: 'binary', description: 'flac, m4a, mp3, mp4, mpga, ogg, wav or webm' },
  model: text,
  prompt: text,
  response_format: { enum: TRANSCRIPTION_FORMATS, default: 'json' },
  temperature: { type: 'number', minimum: 0, maximum: 1, default: 0 },
  itn: { type: 'boolean', default: true, description: 'Whether numbers may be written as figures' },
};

/** The schemas of the document. */
export const SCHEMAS: Readonly<Record<string, Json>> = {
  InferenceRequest: {
    type: 'object',
    description: 'What the gateway reads of a body. It passes all members on, byte for byte.',
    properties: {
      model: { ...text, description: 'Chooses the pool. Moderations may leave it out' },
      stream: { type: 'boolean' },
      service_tier: {
        ...text,
        description: '`priority` asks for the band critical, `flex` for sheddable',
      },
      max_tokens: { type: 'integer' },
      max_completion_tokens: { type: 'integer' },
      max_output_tokens: { type: 'integer' },
    },
    additionalProperties: true,
  },
  TranscriptionForm: {
    ...form,
    properties: {
      ...formFields,
      language: { ...text, description: 'ISO 639-1' },
      'timestamp_granularities[]': {
        type: 'array',
        items: { enum: ['word', 'segment'] },
        description: 'Only with `verbose_json`',
      },
      stream: { type: 'boolean', description: 'Only with `json` and `text`' },
    },
  },
  TranslationForm: { ...form, properties: formFields },
  Transcription: {
    type: 'object',
    description: 'The answer in `json` or `verbose_json`; other formats are text',
    properties: { text, usage: { type: 'object' } },
    required: ['text'],
    additionalProperties: true,
  },
  Cancelled: {
    type: 'object',
    properties: {
      request_id: text,
      cancelled: { type: 'boolean', description: 'Whether this call cancelled a request' },
    },
    required: ['request_id', 'cancelled'],
  },
  Model: {
    type: 'object',
    properties: {
      id: text,
      object: { const: 'model' },
      created: { type: 'integer' },
      owned_by: text,
    },
    required: ['id', 'object', 'created', 'owned_by'],
    additionalProperties: true,
  },
  ModelList: {
    type: 'object',
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items: { $ref: '#/components/schemas/Model' } },
    },
    required: ['object', 'data'],
  },
  Error: {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: { message: text, type: text, param: nullableText, code: nullableText },
        required: ['message', 'type', 'param', 'code'],
      },
    },
    required: ['error'],
  },
};

const reasons = Object.values(DROP_CODES)
  .map(({ reason }) => reason)
  .filter((reason) => reason !== null);

/** Headers of answers, by name. */
export const HEADERS: Readonly<Record<string, Json>> = {
  'x-request-id': {
    description: "The request's own id if it is safe to log, else a new one",
    schema: text,
  },
  'server-timing': {
    description:
      'The time in the queue, ms; 0 if the request did not wait. Of audio also that at workers',
    schema: { ...text, pattern: '^queue;dur=\\d+(, worker;dur=\\d+)?$' },
  },
  'retry-after': {
    description: 'Seconds, 1 to 60',
    schema: { type: 'integer', minimum: 1, maximum: 60 },
  },
  'x-nightshift-dropped': {
    description: 'No backend has served the request, and why. It may be sent again',
    schema: text,
  },
  'x-llm-d-request-dropped-reason': { schema: { ...text, enum: [...new Set(reasons)] } },
  'www-authenticate': { schema: text },
};

/** Statuses with which requests are dropped. */
const DROPPED = [429, 502, 503, 504];

/** References to the headers of an answer. @param isPassed whether the request is for a backend */
export function headersOf(status: number, isPassed: boolean): Json {
  const names = [
    'x-request-id',
    ...(status === 200 && isPassed ? ['server-timing'] : []),
    ...(status === 401 ? ['www-authenticate'] : []),
    ...([429, 502, 503, 504].includes(status) ? ['retry-after'] : []),
    ...(isPassed && DROPPED.includes(status)
      ? ['x-nightshift-dropped', 'x-llm-d-request-dropped-reason']
      : []),
  ];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
