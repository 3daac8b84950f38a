import { hasEnded } from '../job-phases';
import type { StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';

const WINDOW_MS = 24 * 3_600_000;

/** A job as OpenAI's batch object shows it. */
export function batchObject(
  job: StoredJob,
  settings: ProviderSettings,
  nowMs: number,
): Record<string, unknown> & { readonly id: string } {
  const { id, request, errors, createdMs, progress, outcome } = job;
  const { phase, times, sinceMs } = progress;
  const isOver = hasEnded(phase);
  const hasFiles = isOver && nowMs >= sinceMs + settings.results_lag_ms;
  const failed = phase === 'failed';
  return {
    id,
    object: 'batch',
    ...request,
    errors: failed ? { object: 'list', data: errors } : null,
    status: phase === 'in_progress' ? settings.running_word : phase,
    output_file_id: hasFiles ? (outcome?.outputFile ?? null) : null,
    error_file_id: hasFiles ? (outcome?.errorFile ?? null) : null,
    created_at: seconds(createdMs),
    in_progress_at: seconds(times.in_progress),
    expires_at: seconds(createdMs + WINDOW_MS),
    finalizing_at: seconds(times.finalizing),
    completed_at: seconds(times.completed),
    failed_at: seconds(times.failed),
    expired_at: seconds(times.expired),
    cancelling_at: seconds(times.cancelling),
    cancelled_at: seconds(times.cancelled),
    request_counts: countsOf(job, settings, nowMs),
    usage: isOver ? (outcome?.usage ?? null) : null,
  };
}

function countsOf(
  { lines, outcome, progress: { phase, sinceMs } }: StoredJob,
  { running_ms: runningMs, hold }: ProviderSettings,
  nowMs: number,
): unknown {
  if (outcome !== null)
    return { total: lines, completed: outcome.completed, failed: outcome.failed };
  if (phase === 'validating' || phase === 'failed') return { total: 0, completed: 0, failed: 0 };
  const share = hold || runningMs === 0 ? 0 : Math.min(1, (nowMs - sinceMs) / runningMs);
  const isRunning = phase === 'in_progress';
  return { total: lines, completed: isRunning ? Math.floor(lines * share) : 0, failed: 0 };
}

function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1_000);
}
