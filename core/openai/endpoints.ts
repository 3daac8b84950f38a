/** What a request to an endpoint must contain (docs/design/api-contract.md#endpoints). */
export interface EndpointRule {
  /** Required members of `body`; `model` is checked separately. */
  readonly required: readonly string[];
  /** Whether `input` counts towards the limit of inputs in a file. */
  readonly countsInputs: boolean;
  /** Whether a missing `model` means the configured default. */
  readonly modelOptional: boolean;
  /** Whether `body` names a recording, as an uploaded file or in itself. Such a request is sent as a form. */
  readonly namesAudio: boolean;
  /** Whether answers are audio. */
  readonly answersAudio: boolean;
}

const PLAIN: EndpointRule = {
  required: [],
  countsInputs: false,
  modelOptional: false,
  namesAudio: false,
  answersAudio: false,
};

const RULES: ReadonlyMap<string, EndpointRule> = new Map([
  ['/v1/chat/completions', { ...PLAIN, required: ['messages'] }],
  ['/v1/completions', { ...PLAIN, required: ['prompt'] }],
  ['/v1/embeddings', { ...PLAIN, required: ['input'], countsInputs: true }],
  ['/v1/responses', { ...PLAIN, required: ['input'] }],
  ['/v1/moderations', { ...PLAIN, required: ['input'], modelOptional: true }],
  ['/v1/images/generations', { ...PLAIN, required: ['prompt'] }],
  ['/v1/images/edits', { ...PLAIN, required: ['prompt', 'images'] }],
  ['/v1/videos', { ...PLAIN, required: ['prompt'] }],
  ['/v1/audio/transcriptions', { ...PLAIN, namesAudio: true }],
  ['/v1/audio/translations', { ...PLAIN, namesAudio: true }],
  ['/v1/audio/speech', { ...PLAIN, required: ['input', 'voice'], answersAudio: true }],
]);

/** The rule of an endpoint. An endpoint that is only in the configuration requires nothing but `model`. */
export function endpointRule(endpoint: string): EndpointRule {
  return RULES.get(endpoint) ?? PLAIN;
}

/** Whether requests of the endpoint carry audio, or answers do. They take long. */
export function isAudioEndpoint(endpoint: string): boolean {
  const { namesAudio, answersAudio } = endpointRule(endpoint);
  return namesAudio || answersAudio;
}
