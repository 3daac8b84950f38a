import { isJsonObject } from '../../core/openai/json-object';
import { readBatch } from '../openai/batch-object';
import { createMembers, OPENAI_DIALECT, type OpenAiDialect } from '../openai/dialect';

const MB = 1_000_000;

/**
 * Together AI, below `https://api.together.ai/v1`: https://docs.together.ai/docs/inference/batch/overview, with the wire
 * of https://docs.together.ai/reference/batch-create. It keeps no metadata, so a job is recognised by its input file, and
 * it counts no requests, so only both result files prove that none is missing.
 */
export const TOGETHER_DIALECT: OpenAiDialect = {
  ...OPENAI_DIALECT,
  capabilities: {
    ...OPENAI_DIALECT.capabilities,
    storesMarker: false,
    maxBytes: 100 * MB,
    // A batch without a failed request has one file, so each of them waits this long.
    resultsLagMs: 60_000,
  },
  uploadPath: '/files/upload',
  uploadFields: (fileName) => [
    ['purpose', 'batch-api'],
    ['file_name', fileName],
    ['file_type', 'jsonl'],
  ],
  linesNameUrl: false,
  // The whole list is one answer.
  listing: {
    query: () => '',
    read: (json) => (Array.isArray(json) ? { data: json as readonly unknown[], next: null } : null),
    isNewestFirst: false,
  },
  createBody: createMembers,
  readCreated: (json, mask) => (isJsonObject(json) ? readBatch(json['job'], mask) : null),
};
