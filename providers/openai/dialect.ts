import type { JobToCreate, ProviderCapabilities } from '../provider';
import { OPENAI_LISTING, type BatchListing } from './batch-list';
import { jobMarker } from './job-marker';

/** What tells apart the hosts that speak OpenAI's Files and Batches API. */
export interface OpenAiDialect {
  readonly capabilities: ProviderCapabilities;
  /** See `Provider.completionWindow`. */
  completionWindow(timeLeftMs: number): string;
  /** `metadata` of a create, with our marker; null for a host that keeps none. */
  metadata(job: JobToCreate): Readonly<Record<string, string>> | null;
  /** Headers by which the host recognises a repeated POST: name, value. */
  idempotencyHeaders(jobId: string): readonly string[];
  /** Whether an uploaded file must be processed before a create may name it. */
  readonly processesInputs: boolean;
  /** Headers with the credential: name, value. */
  authorize(key: string): readonly string[];
  /** Where input files are uploaded, below the base URL. */
  readonly uploadPath: string;
  /** The fields of an upload beside the file: name and value. */
  uploadFields(fileName: string): readonly (readonly [name: string, value: string])[];
  /** Whether lines of an input name method and URL, or only the id and the body. */
  readonly linesNameUrl: boolean;
  readonly listing: BatchListing;
  /** The batch in the answer to a create. */
  createdBatch(json: unknown): unknown;
}

const MB = 1_000_000;
/** The provider deletes the file by itself after this time, should we never come back, s. */
const EXPIRES_AFTER_SEC = 14 * 24 * 3600;

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
  metadata: jobMarker,
  idempotencyHeaders: () => [],
  processesInputs: false,
  authorize: (key) => ['authorization', `Bearer ${key}`],
  uploadPath: '/files',
  uploadFields: () => [
    ['purpose', 'batch'],
    ['expires_after[anchor]', 'created_at'],
    ['expires_after[seconds]', String(EXPIRES_AFTER_SEC)],
  ],
  linesNameUrl: true,
  listing: OPENAI_LISTING,
  createdBatch: (json) => json,
};
