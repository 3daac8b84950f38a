/** What is known of a type of provider without asking it. */
export interface ProviderTypeFacts {
  /** Endpoints whose lines it takes; null for all but those with audio. */
  readonly endpoints: readonly string[] | null;
  /** Whether lines are translated into the provider's own format, so that the settings of that have an effect. */
  readonly translates: boolean;
  /** Whether its format demands the most tokens of each answer, also of lines that state none. */
  readonly demandsMaxTokens: boolean;
  /** How many jobs run as one part (docs/design/delegation.md#parts-of-several-jobs). */
  readonly jobsPerPart: number;
}

const OPENAI_LIKE: ProviderTypeFacts = {
  endpoints: null,
  translates: false,
  demandsMaxTokens: false,
  jobsPerPart: 1,
};

/** Requests in OpenAI's format, of chats only. */
const CHAT_AS_IT_IS: ProviderTypeFacts = { ...OPENAI_LIKE, endpoints: ['/v1/chat/completions'] };

/** Recordings, a few in each job. */
const TRANSCRIPTIONS: ProviderTypeFacts = {
  endpoints: ['/v1/audio/transcriptions'],
  translates: true,
  demandsMaxTokens: false,
  jobsPerPart: 64,
};
/** Requests that are translated into the provider's own format, of chats only. */
const TRANSLATED_CHAT: ProviderTypeFacts = { ...CHAT_AS_IT_IS, translates: true };

/** The types of providers that have an adapter (docs/design/providers.md). */
export const PROVIDER_TYPES = {
  openai: OPENAI_LIKE,
  azure_openai: OPENAI_LIKE,
  nightshift: OPENAI_LIKE,
  mistral: { ...OPENAI_LIKE, endpoints: ['/v1/chat/completions', '/v1/embeddings'] },
  groq: CHAT_AS_IT_IS,
  together: CHAT_AS_IT_IS,
  aws_transcribe: TRANSCRIPTIONS,
  anthropic: { ...TRANSLATED_CHAT, demandsMaxTokens: true },
  azure_speech: TRANSCRIPTIONS,
  bedrock: TRANSLATED_CHAT,
  sarvam: TRANSCRIPTIONS,
  gemini: TRANSLATED_CHAT,
  vertex: TRANSLATED_CHAT,
  google_speech: TRANSCRIPTIONS,
} as const satisfies Readonly<Record<string, ProviderTypeFacts>>;

/** A type of provider, as settings name it. */
export type ProviderType = keyof typeof PROVIDER_TYPES;

/** Whether a provider of the type takes lines of the endpoint, such as `/v1/chat/completions`. */
export function takesEndpoint(type: ProviderType, endpoint: string): boolean {
  const { endpoints }: ProviderTypeFacts = PROVIDER_TYPES[type];
  return endpoints === null ? !endpoint.startsWith('/v1/audio/') : endpoints.includes(endpoint);
}
