import { randomUUID } from 'node:crypto';
import type { CallOptions, IdempotentResult, JobRemains } from '../provider';
import type { RemoteFolder } from '../remote-folder';

/** The first part of a name: only what belongs to a job is ever deleted. */
const JOB_FOLDER = /^(job_[0-9a-f]{32})\//;
const DONE: IdempotentResult<void> = { outcome: 'ok', value: undefined };

/** A name for the input of a job. Each upload has its own, so none replaces what the job reads. */
export function inputName(jobId: string): string {
  return `${jobId}/input-${randomUUID()}.jsonl`;
}

/** The beginning of the names of a job's results. */
export function outputName(jobId: string): string {
  return `${jobId}/output`;
}

/** Deletes all objects of the jobs that the inputs and results belong to, also of uploads that were repeated. */
export async function removeJobFiles(
  folder: RemoteFolder,
  { remoteInputs, resultFiles }: JobRemains,
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  const names = [...remoteInputs, ...resultFiles].map((uri) => folder.nameOf(uri) ?? '');
  const jobs = new Set(names.flatMap((name) => JOB_FOLDER.exec(name)?.[1] ?? []));
  for (const job of jobs) {
    const listed = await folder.list(`${job}/`, call);
    if (listed.outcome !== 'ok') return listed;
    for (const name of listed.value) {
      const deleted = await folder.delete(name, call);
      if (deleted.outcome !== 'ok') return deleted;
    }
  }
  return DONE;
}
