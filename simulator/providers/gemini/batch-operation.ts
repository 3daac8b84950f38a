import { hasEnded, type JobPhase } from '../job-phases';
import type { StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';

const STATES: Readonly<Record<JobPhase, string>> = {
  validating: 'BATCH_STATE_PENDING',
  in_progress: 'BATCH_STATE_RUNNING',
  finalizing: 'BATCH_STATE_RUNNING',
  cancelling: 'BATCH_STATE_RUNNING',
  completed: 'BATCH_STATE_SUCCEEDED',
  failed: 'BATCH_STATE_FAILED',
  expired: 'BATCH_STATE_EXPIRED',
  cancelled: 'BATCH_STATE_CANCELLED',
};
const TYPE = 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch';

/** A batch as the API shows it: a long-running operation whose metadata is the batch. */
export function batchOperation(
  job: StoredJob,
  settings: ProviderSettings,
  nowMs: number,
): Readonly<Record<string, unknown>> {
  const { id, request, errors, createdMs, progress, outcome } = job;
  const { phase, sinceMs } = progress;
  const isOver = hasEnded(phase);
  const file = outcome?.outputFile ?? null;
  const hasOutput = isOver && file !== null && nowMs >= sinceMs + settings.results_lag_ms;
  const output = hasOutput ? { output: { responsesFile: file } } : {};
  const [error] = errors;
  return {
    name: id,
    metadata: {
      '@type': TYPE,
      ...request,
      name: id,
      state: stateOf(phase, settings),
      createTime: time(createdMs),
      ...(isOver ? { endTime: time(sinceMs) } : {}),
      updateTime: time(sinceMs),
      batchStats: statsOf(job),
      ...output,
    },
    ...(isOver ? { done: true } : {}),
    ...(phase === 'failed' && error !== undefined
      ? { error: { code: 3, message: error.message } }
      : {}),
    ...(phase === 'completed' && hasOutput
      ? { response: { '@type': `${TYPE}Output`, responsesFile: file } }
      : {}),
  };
}

function stateOf(phase: JobPhase, { running_word: word }: ProviderSettings): string {
  return phase === 'in_progress' && word !== 'in_progress' ? word : STATES[phase];
}

/** 64-bit numbers are texts, and those that are 0 are left out. */
function statsOf({ lines, outcome }: StoredJob): Readonly<Record<string, string>> {
  const { completed = 0, failed = 0 } = outcome ?? {};
  const counts = {
    requestCount: lines,
    successfulRequestCount: completed,
    failedRequestCount: failed,
    pendingRequestCount: lines - completed - failed,
  };
  const given = Object.entries(counts).filter(([, count]) => count > 0);
  return Object.fromEntries(given.map(([name, count]) => [name, String(count)]));
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
