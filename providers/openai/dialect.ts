import type { NewJob, ProviderCapabilities } from '../provider';
import { OPENAI_LISTING, type BatchListing } from './batch-list';
import { readBatch, type OpenAiBatch } from './batch-object';
import { readErrorObject, type OpenAiError } from './error-object';
import { jobMarker } from './job-marker';

type Mask = (text: string) => string;

/** What tells apart the hosts that speak OpenAI's Files and Batches API. */
export interface OpenAiDialect {
  readonly capabilities: ProviderCapabilities;
  /** See `Provider.completionWindow`. */
  completionWindow(timeLeftMs: number): string;
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
  /** Where batches are, below the base URL. */
  readonly batchesPath: string;
  /** The body of a create. It is the same for each attempt at a job. */
  createBody(job: NewJob): Readonly<Record<string, unknown>>;
  readonly listing: BatchListing;
  /** A batch object; null if it is none. */
  readBatch(json: unknown, mask: Mask): OpenAiBatch | null;
  /** The batch in the answer to a create; null if there is none. */
  readCreated(json: unknown, mask: Mask): OpenAiBatch | null;
  /** The error in an answer without success; null if the host did not write it. */
  readError(json: unknown): OpenAiError | null;
}

const MB = 1_000_000;
/** The provider deletes the file by itself after this time, should we never come back, s. */
const EXPIRES_AFTER_SEC = 14 * 24 * 3600;

/** The members of a create at every host with OpenAI's batches. */
export function createMembers({ remoteInput, endpoint, window }: NewJob): {
  readonly input_file_id: string | null;
  readonly endpoint: string;
  readonly completion_window: string | null;
} {
  return { input_file_id: remoteInput, endpoint, completion_window: window };
}

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
  batchesPath: '/batches',
  createBody: (job) => ({ ...createMembers(job), metadata: jobMarker(job) }),
  listing: OPENAI_LISTING,
  readBatch,
  readCreated: readBatch,
  readError: readErrorObject,
};
