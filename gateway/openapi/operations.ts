/** Paths below `/v1` that are passed on to backends. */
export const PROXIED_PATHS = [
  '/chat/completions',
  '/completions',
  '/embeddings',
  '/responses',
  '/moderations',
  '/audio/speech',
] as const;

/** One method of one path, as the document describes it. */
export interface GatewayOperation {
  readonly id: string;
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly summary: string;
  /** The name of the schema of a success; null if it is the backend's own. */
  readonly answer: string | null;
  /** The name of the schema of the body; null for none. */
  readonly body: string | null;
  /** Whether it waits for a backend, so that the queue may drop it. */
  readonly isQueued: boolean;
  /** Statuses of the gateway's own errors. */
  readonly errors: readonly number[];
}

/** Errors that any request may get. */
const COMMON = [401, 403, 408, 414, 429, 431, 500];
/** Errors of requests that are passed on. A backend may answer with any other status. */
const OF_REQUESTS = [400, 404, 413, 415, 502, 503, 504];

const IDS: Readonly<Record<(typeof PROXIED_PATHS)[number], readonly [id: string, what: string]>> = {
  '/chat/completions': ['createChatCompletion', 'Create a chat completion'],
  '/completions': ['createCompletion', 'Create a completion'],
  '/embeddings': ['createEmbedding', 'Create embeddings'],
  '/responses': ['createResponse', 'Create a response'],
  '/moderations': ['createModeration', 'Classify content'],
  '/audio/speech': ['createSpeech', 'Speak a text'],
};

const NO_BODY = { body: null, isQueued: false };

/** Routes of audio workers. A cancelled request gets 499. */
function audioOperations(): GatewayOperation[] {
  const errors = [...OF_REQUESTS, 499, ...COMMON];
  const form = { method: 'post', answer: 'Transcription', isQueued: true, errors } as const;
  const cancels = ['transcriptions', 'translations', 'speech'].map((kind): GatewayOperation => {
    const [first = '', ...rest] = kind;
    return {
      id: `cancel${first.toUpperCase()}${rest.join('')}`,
      method: 'post',
      path: `/v1/audio/${kind}/{request_id}/cancel`,
      summary: 'Cancel a request by its id',
      answer: 'Cancelled',
      ...NO_BODY,
      errors: COMMON,
    };
  });
  return [
    {
      ...{ ...form, id: 'createTranscription', path: '/v1/audio/transcriptions' },
      ...{ summary: 'Transcribe a recording', body: 'TranscriptionForm' },
    },
    {
      ...{ ...form, id: 'createTranslation', path: '/v1/audio/translations' },
      ...{ summary: 'Translate a recording into English', body: 'TranslationForm' },
    },
    ...cancels,
  ];
}

/** Every operation of the gateway. */
export const GATEWAY_OPERATIONS: readonly GatewayOperation[] = [
  ...PROXIED_PATHS.map((path): GatewayOperation => {
    const [id, summary] = IDS[path];
    const errors = [...OF_REQUESTS, ...COMMON];
    return {
      ...{ id, method: 'post', path: `/v1${path}`, summary, answer: null, errors },
      ...{ body: 'InferenceRequest', isQueued: true },
    };
  }),
  ...audioOperations(),
  {
    id: 'listModels',
    method: 'get',
    path: '/v1/models',
    summary: 'List the models of all pools',
    answer: 'ModelList',
    ...NO_BODY,
    errors: COMMON,
  },
  {
    id: 'retrieveModel',
    method: 'get',
    path: '/v1/models/{model}',
    summary: 'Retrieve a model',
    answer: 'Model',
    ...NO_BODY,
    errors: [404, 503, ...COMMON],
  },
];
