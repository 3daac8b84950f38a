import type { NewJob, ProviderCapabilities } from '../provider';

/** What tells apart the hosts that speak OpenAI's Files and Batches API. */
export interface OpenAiDialect {
  readonly capabilities: ProviderCapabilities;
  /** See `Provider.completionWindow`. */
  completionWindow(timeLeftMs: number): string;
  /** Further members of `metadata`, beside our marker. */
  metadata(job: NewJob): Readonly<Record<string, string>>;
  /** Headers by which the host recognises a repeated POST: name, value. */
  idempotencyHeaders(jobId: string): readonly string[];
  /** Whether an uploaded file must be processed before a create may name it. */
  readonly processesInputs: boolean;
  /** Headers with the credential: name, value. */
  authorize(key: string): readonly string[];
}

const MB = 1_000_000;

/** OpenAI itself: https://platform.openai.com/docs/guides/batch. Its POSTs take no idempotency key. */
export const OPENAI_DIALECT: OpenAiDialect = {
  capabilities: {
    input: 'uploaded',
    find: 'list',
    storesMarker: true,
    isSingleModel: false,
    canCancel: true,
    maxLines: 50_000,
    maxBytes: 200 * MB,
    maxEmbeddingInputs: 50_000,
    minPollMs: 0,
    settleMs: 30_000,
    resultsLagMs: 5 * 60_000,
  },
  completionWindow: () => '24h',
  metadata: () => ({}),
  idempotencyHeaders: () => [],
  processesInputs: false,
  authorize: (key) => ['authorization', `Bearer ${key}`],
};
