import { HOPS_KEY } from '../../core/delegation/hops';
import { jobMarker } from '../openai/job-marker';
import { createMembers, OPENAI_DIALECT, type OpenAiDialect } from '../openai/dialect';

/** Windows that the API of Nightshift takes: 1 s to 30 days (docs/design/api-contract.md#completion-window). */
const MAX_WINDOW_SEC = 30 * 24 * 3600;

/**
 * Another installation of Nightshift. It recognises a repeated POST by its key, takes any window, and counts in
 * `metadata.nightshift_hops` how often a batch was passed on.
 */
export const NIGHTSHIFT_DIALECT: OpenAiDialect = {
  ...OPENAI_DIALECT,
  capabilities: {
    ...OPENAI_DIALECT.capabilities,
    find: 'key',
    maxEmbeddingInputs: null,
    settleMs: 0,
    // The files of an ended batch are named in the same row as its end.
    resultsLagMs: 0,
  },
  completionWindow: (timeLeftMs) => {
    const seconds = Math.floor(timeLeftMs / 1_000);
    return `${Math.min(Math.max(seconds, 1), MAX_WINDOW_SEC)}s`;
  },
  createBody: (job) => ({
    ...createMembers(job),
    metadata: { ...jobMarker(job), [HOPS_KEY]: String(job.hops + 1) },
  }),
  idempotencyHeaders: (jobId) => ['idempotency-key', jobId],
};
