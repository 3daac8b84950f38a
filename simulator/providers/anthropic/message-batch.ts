import { hasEnded } from '../job-phases';
import type { StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';

const LIFETIME_MS = 24 * 3_600_000;

/** Whether a job's results can be read. */
export function hasResults(
  { progress, outcome }: StoredJob,
  { results_lag_ms: lagMs }: ProviderSettings,
  nowMs: number,
): boolean {
  return outcome !== null && hasEnded(progress.phase) && nowMs >= progress.sinceMs + lagMs;
}

/** A job as a Message Batch. @param root the address of the API */
export function messageBatch(
  job: StoredJob,
  settings: ProviderSettings,
  { nowMs, root }: { readonly nowMs: number; readonly root: string },
): Record<string, unknown> & { readonly id: string } {
  const { id, createdMs, progress } = job;
  const { phase, times, sinceMs } = progress;
  return {
    id,
    type: 'message_batch',
    processing_status: statusOf(job, settings),
    request_counts: countsOf(job),
    created_at: timeOf(createdMs),
    expires_at: timeOf(createdMs + LIFETIME_MS),
    ended_at: hasEnded(phase) ? timeOf(sinceMs) : null,
    cancel_initiated_at: times.cancelling === undefined ? null : timeOf(times.cancelling),
    archived_at: null,
    results_url: hasResults(job, settings, nowMs)
      ? `${root}/v1/messages/batches/${id}/results`
      : null,
  };
}

function statusOf({ progress: { phase } }: StoredJob, settings: ProviderSettings): string {
  if (hasEnded(phase)) return 'ended';
  if (phase === 'cancelling') return 'canceling';
  return phase === 'in_progress' ? settings.running_word : 'in_progress';
}

/** All requests are `processing` until the batch has ended. */
function countsOf({ lines, outcome, progress }: StoredJob): Record<string, number> {
  const { phase, answered } = progress;
  const counts = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 };
  if (outcome === null || !hasEnded(phase)) return { ...counts, processing: lines };
  const { completed: succeeded } = outcome;
  const unrun = lines - answered;
  const name = phase === 'expired' ? 'expired' : 'canceled';
  return { ...counts, succeeded, errored: answered - succeeded, [name]: unrun };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
