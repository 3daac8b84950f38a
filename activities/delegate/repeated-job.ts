import { capacityDelayMs } from '../../core/delegation/intervals';
import { jobId } from '../../core/delegation/job-ids';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { JobAttempt } from './job-attempt';
import { sha256Hex } from './open-parts';
import { notBeyond, retryLater } from './retry-later';

/**
 * Lets a job wait that repeats one for which the provider had no quota. OpenAI says so only after it has
 * accepted a job, so the pause cannot come from the create. @throws a failure that is retried after the pause
 */
export async function awaitTurn({ deps, input }: JobAttempt, row: JobRow): Promise<void> {
  if (row.ordinal === 0) return;
  const last = await deps.jobs.find(jobId({ ...row, ordinal: row.ordinal - 1 }, sha256Hex));
  if (last?.error?.reason !== 'quota' || last.endedAtMs === null) return;
  const dueMs = last.endedAtMs + capacityDelayMs(row.ordinal, null);
  const nowMs = Date.now();
  if (nowMs >= dueMs) return;
  const message = `${row.provider} had no quota for this job; it is submitted again`;
  throw retryLater(message, notBeyond(dueMs - nowMs, input.giveUpAtMs, nowMs));
}
