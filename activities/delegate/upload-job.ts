import type { CallOptions, JobInput as StagedBody } from '../../providers/provider';
import type { ObjectStore } from '../../storage/object-store';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { JobAttempt } from './job-attempt';
import { failedCall, jobToFind, logFailure, observedCall } from './job-attempt';

/**
 * Uploads the staged input and notes its id. Of several uploads the first counts. A provider that refuses the
 * upload for good refuses the job. @throws a failure that is retried after a pause
 */
export async function uploadJob(
  attempt: JobAttempt,
  row: JobRow,
  signal: AbortSignal,
): Promise<JobRow> {
  const { provider, deps, input } = attempt;
  const job = await jobToFind(attempt, row);
  const body = stagedBody(deps.store, row);
  const openFile = (fileId: string) => deps.lineFiles.open(input, fileId);
  const call = (options: CallOptions) => provider.api.upload(job, body, { ...options, openFile });
  const result = await observedCall(attempt, 'upload', call, signal);
  if (result.outcome === 'ok') return (await deps.jobs.recordUpload(row.id, result.value)) ?? row;
  if (result.outcome !== 'refused' && result.outcome !== 'gone') {
    throw failedCall(attempt, 'upload', result, attempt.input.giveUpAtMs);
  }
  logFailure(attempt, 'upload', result);
  const { code, message } = result.failure;
  return (await deps.jobs.refuse(row.id, { code, message })) ?? row;
}

/** The staged input of a job, read from the store each time it is sent. */
export function stagedBody(store: ObjectStore, { stagedKey, bytes }: JobRow): StagedBody {
  return { bytes: bytes ?? 0, open: () => store.stream(stagedKey ?? '') };
}
