import type { JobInput as StagedBody } from '../../providers/provider';
import type { ObjectStore } from '../../storage/object-store';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { JobAttempt } from './job-attempt';
import { jobToFind, valueOf } from './job-attempt';

/** Uploads the staged input and notes its id. Of several uploads the first counts. */
export async function uploadJob(
  attempt: JobAttempt,
  row: JobRow,
  signal: AbortSignal,
): Promise<JobRow> {
  const { provider, deps } = attempt;
  const job = await jobToFind(attempt, row);
  const body = stagedBody(deps.store, row);
  const call = (options: { signal: AbortSignal }) => provider.api.upload(job, body, options);
  const upload = await valueOf(attempt, 'upload', call, signal);
  return (await deps.jobs.recordUpload(row.id, upload)) ?? row;
}

/** The staged input of a job, read from the store each time it is sent. */
export function stagedBody(store: ObjectStore, { stagedKey, bytes }: JobRow): StagedBody {
  return { bytes: bytes ?? 0, open: () => store.stream(stagedKey ?? '') };
}
