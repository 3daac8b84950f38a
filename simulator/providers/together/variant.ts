import { z } from 'zod';
import { errorAnswer, jsonAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded, type JobPhase } from '../job-phases';
import type { StoredJob } from '../job-store';
import { batchObject } from '../openai/batch-object';
import { parseRequest } from '../openai/create-request';
import { openAiApi } from '../openai/routes';
import type { BatchView, OpenAiVariant } from '../openai/variant';

const createRequest = z.strictObject({
  input_file_id: z.string().min(1),
  endpoint: z.enum(['/v1/chat/completions', '/v1/audio/transcriptions', '/v1/audio/translations']),
  completion_window: z.literal('24h').default('24h'),
  model_id: z.string().optional(),
  priority: z.int().optional(),
});

const WINDOW_MS = 24 * 3_600_000;
/** A batch that is being finalised or cancelled is in progress. */
const WORDS: ReadonlyMap<JobPhase, string> = new Map([
  ['finalizing', 'IN_PROGRESS'],
  ['cancelling', 'IN_PROGRESS'],
]);

/**
 * The batch API of Together AI: https://docs.together.ai/reference/batch-create. It keeps no metadata, counts no
 * requests, and writes its states in capitals.
 */
const TOGETHER_VARIANT: OpenAiVariant = {
  prefix: 'together',
  root: '/v1',
  uploadPath: '/files/upload',
  purposes: ['batch-api', 'fine-tune', 'eval'],
  fileMembers: {},
  batchesPath: '/batches',
  namesUnrun: true,
  errorAnswer,
  linesNameUrl: false,
  readCreate: (body) => {
    const { input_file_id, endpoint } = parseRequest(createRequest, body);
    return { input_file_id, endpoint, lifetimeMs: null };
  },
  shown,
  created: (job) => jsonAnswer({ job, warning: '' }, 201),
  list: (batches) => batches,
};

/** Together AI, below `/providers/together`. */
export const TOGETHER_API = openAiApi(TOGETHER_VARIANT);

function shown(job: StoredJob, { state, nowMs }: ApiCall): BatchView {
  const { id, output_file_id, error_file_id } = batchObject(job, state.settings, nowMs);
  const { phase, sinceMs } = job.progress;
  const isOver = hasEnded(phase);
  const running = state.settings.running_word;
  const word = WORDS.get(phase) ?? (phase === 'in_progress' ? running : phase);
  return {
    id,
    user_id: 'user-simulated',
    ...job.request,
    status: word.toUpperCase(),
    progress: isOver ? 100 : 0,
    error: phase === 'failed' ? (job.errors[0]?.message ?? 'failed') : '',
    ...(output_file_id === null ? {} : { output_file_id }),
    ...(error_file_id === null ? {} : { error_file_id }),
    created_at: new Date(job.createdMs).toISOString(),
    job_deadline: new Date(job.createdMs + WINDOW_MS).toISOString(),
    ...(isOver ? { completed_at: new Date(sinceMs).toISOString() } : {}),
  };
}
