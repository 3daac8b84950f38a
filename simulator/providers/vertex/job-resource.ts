import { hasEnded, type JobPhase } from '../job-phases';
import type { StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';

const STATES: Readonly<Record<JobPhase, string>> = {
  validating: 'JOB_STATE_QUEUED',
  in_progress: 'JOB_STATE_RUNNING',
  finalizing: 'JOB_STATE_RUNNING',
  cancelling: 'JOB_STATE_CANCELLING',
  completed: 'JOB_STATE_SUCCEEDED',
  failed: 'JOB_STATE_FAILED',
  expired: 'JOB_STATE_EXPIRED',
  cancelled: 'JOB_STATE_CANCELLED',
};

/** A job as Vertex AI shows it. */
export function jobResource(
  job: StoredJob,
  settings: ProviderSettings,
  nowMs: number,
): Readonly<Record<string, unknown>> {
  const { id, request, errors, createdMs, progress, outcome } = job;
  const { phase, sinceMs, times } = progress;
  const isOver = hasEnded(phase);
  const hasOutput = isOver && outcome !== null && nowMs >= sinceMs + settings.results_lag_ms;
  const [error] = errors;
  const isFailed = phase === 'failed' && error !== undefined;
  return {
    name: id,
    ...request,
    state: stateOf(job, settings),
    createTime: time(createdMs),
    ...(times.in_progress === undefined ? {} : { startTime: time(times.in_progress) }),
    ...(isOver ? { endTime: time(sinceMs) } : {}),
    updateTime: time(sinceMs),
    ...(isFailed ? { error: { code: 3, message: error.message } } : {}),
    ...(hasOutput ? { outputInfo: { gcsOutputDirectory: outcome.outputFile } } : {}),
    ...(outcome === null ? {} : { completionStats: statsOf(job) }),
  };
}

function stateOf({ progress, outcome }: StoredJob, settings: ProviderSettings): string {
  const { phase } = progress;
  if (phase === 'in_progress' && settings.running_word !== 'in_progress') {
    return settings.running_word;
  }
  const isPartial = phase === 'completed' && (outcome?.failed ?? 0) > 0;
  return isPartial ? 'JOB_STATE_PARTIALLY_SUCCEEDED' : STATES[phase];
}

/** 64-bit numbers are texts, and those that are 0 are left out. */
function statsOf({ lines, outcome }: StoredJob): Readonly<Record<string, string>> {
  const { completed = 0, failed = 0 } = outcome ?? {};
  const counts = {
    successfulCount: completed,
    failedCount: failed,
    incompleteCount: lines - completed - failed,
  };
  const given = Object.entries(counts).filter(([, count]) => count > 0);
  return Object.fromEntries(given.map(([name, count]) => [name, String(count)]));
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
