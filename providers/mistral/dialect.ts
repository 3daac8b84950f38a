import { isJsonObject } from '../../core/openai/json-object';
import { dataOf, type BatchListing } from '../openai/batch-list';
import { countOf } from '../openai/batch-object';
import { OPENAI_DIALECT, type OpenAiDialect } from '../openai/dialect';
import { jobMarker } from '../openai/job-marker';
import { readMistralError, readMistralJob } from './job-object';

const MB = 1_000_000;
const HOUR_MS = 3_600_000;
const MAX_TIMEOUT_HOURS = 7 * 24;
const PAGE_SIZE = 100;

/**
 * The list has numbered pages. The cursor is the number of a page and how many jobs came before it, because a host may
 * make smaller pages than it is asked for. New jobs move the others to later pages, where they are seen twice.
 */
const LISTING: BatchListing = {
  query: (cursor) => `?page=${pageOf(cursor)[0]}&page_size=${PAGE_SIZE}&order_by=-created`,
  read: (json, cursor) => {
    const data = dataOf(json) ?? (isJsonObject(json) && json['total'] === 0 ? [] : null);
    const total = isJsonObject(json) ? countOf(json['total']) : null;
    if (data === null || total === null) return null;
    const [page, before] = pageOf(cursor);
    const seen = before + data.length;
    const isLast = data.length === 0 || seen >= total;
    return { data, next: isLast ? null : `${page + 1}:${seen}` };
  },
  isNewestFirst: true,
};

function pageOf(cursor: string | null): readonly [page: number, before: number] {
  const [page = 0, before = 0] = cursor?.split(':').map(Number) ?? [];
  return [page, before];
}

/**
 * Mistral AI, below `https://api.mistral.ai/v1`: https://docs.mistral.ai/capabilities/batch. Files and result lines are
 * those of OpenAI; jobs, their list and errors are its own. The request names the model of the whole job.
 */
export const MISTRAL_DIALECT: OpenAiDialect = {
  ...OPENAI_DIALECT,
  capabilities: {
    ...OPENAI_DIALECT.capabilities,
    isSingleModel: true,
    maxLines: 1_000_000,
    maxBytes: 512 * MB,
    maxEmbeddingInputs: null,
  },
  // Whole hours that end before we give up, so that Mistral ends the job itself and keeps its partial results.
  completionWindow: (timeLeftMs) =>
    String(Math.min(Math.max(Math.floor(timeLeftMs / HOUR_MS), 1), MAX_TIMEOUT_HOURS)),
  uploadFields: () => [['purpose', 'batch']],
  linesNameUrl: false,
  batchesPath: '/batch/jobs',
  createBody: (job) => ({
    input_files: [job.remoteInput],
    endpoint: job.endpoint,
    model: job.model,
    timeout_hours: Number(job.window),
    metadata: jobMarker(job),
  }),
  listing: LISTING,
  readBatch: readMistralJob,
  readCreated: readMistralJob,
  readError: readMistralError,
};
