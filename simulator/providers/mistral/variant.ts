import { z } from 'zod';
import { jsonAnswer, type ApiFault, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import type { JobPhase } from '../job-phases';
import type { StoredJob } from '../job-store';
import { batchObject } from '../openai/batch-object';
import { batchMetadata, parseRequest } from '../openai/create-request';
import { openAiApi } from '../openai/routes';
import type { BatchView, OpenAiVariant } from '../openai/variant';
import { DEFAULT_PROVIDER_SETTINGS } from '../settings';

const createRequest = z.strictObject({
  input_files: z.tuple([z.string().min(1)]),
  endpoint: z.enum(['/v1/chat/completions', '/v1/embeddings']),
  model: z.string().min(1),
  timeout_hours: z.int().min(1).max(168).default(24),
  metadata: batchMetadata.nullish(),
});

const WORDS: Readonly<Record<JobPhase, string>> = {
  validating: 'QUEUED',
  in_progress: 'RUNNING',
  finalizing: 'RUNNING',
  completed: 'SUCCESS',
  failed: 'FAILED',
  expired: 'TIMEOUT_EXCEEDED',
  cancelling: 'CANCELLATION_REQUESTED',
  cancelled: 'CANCELLED',
};

/** The batch API of Mistral AI: https://docs.mistral.ai/capabilities/batch. */
const MISTRAL_VARIANT: OpenAiVariant = {
  prefix: 'mistral',
  root: '/v1',
  uploadPath: '/files',
  purposes: ['batch', 'fine-tune', 'ocr'],
  fileMembers: { sample_type: 'batch_request', source: 'upload' },
  batchesPath: '/batch/jobs',
  linesNameUrl: false,
  namesUnrun: false,
  readCreate: (body) => {
    const { input_files, endpoint, model, metadata = null } = parseRequest(createRequest, body);
    return { input_file_id: input_files[0], endpoint, model, metadata, lifetimeMs: null };
  },
  shown,
  created: (job) => jsonAnswer(job),
  list: listed,
  errorAnswer,
};

/** Mistral AI, below `/providers/mistral`. */
export const MISTRAL_API = openAiApi(MISTRAL_VARIANT);

function shown(job: StoredJob, { state, nowMs }: ApiCall): BatchView {
  const batch = batchObject(job, state.settings, nowMs);
  const { phase } = job.progress;
  const { input_file_id, endpoint, model, metadata } = job.request;
  const { running_word: running } = state.settings;
  const isAsked = phase === 'in_progress' && running !== DEFAULT_PROVIDER_SETTINGS.running_word;
  const { outcome, lines } = job;
  const [completed, failed] = [outcome?.completed ?? 0, outcome?.failed ?? 0];
  return {
    id: job.id,
    object: 'batch',
    input_files: [input_file_id],
    metadata,
    endpoint,
    model,
    output_file: batch['output_file_id'],
    error_file: batch['error_file_id'],
    errors: job.errors.map(({ message }) => ({ message, count: 1 })),
    status: isAsked ? running.toUpperCase() : WORDS[phase],
    created_at: batch['created_at'],
    started_at: batch['in_progress_at'],
    completed_at: batch['completed_at'],
    total_requests: lines,
    completed_requests: completed + failed,
    succeeded_requests: completed,
    failed_requests: failed,
  };
}

/** Numbered pages, from 0. */
function listed(jobs: readonly BatchView[], { query, state }: ApiCall): unknown {
  const size = Math.min(Number(query.get('page_size') ?? 100), state.settings.max_page);
  const start = Number(query.get('page') ?? 0) * size;
  const ordered = query.get('order_by') === '-created' ? jobs : [...jobs].reverse();
  return { object: 'list', data: ordered.slice(start, start + size), total: jobs.length };
}

function errorAnswer({ httpStatus, message, param, apiCode }: ApiFault): ProviderAnswer {
  const error = { object: 'error', message, type: 'error', param, code: apiCode };
  return jsonAnswer(error, httpStatus);
}
