import type { JobToCreate, JobToFind } from '../provider';
import type { OpenAiBatch } from './batch-object';

const JOB_KEY = 'nightshift_job';
const STORE_KEY = 'nightshift_store';

/** The members of `metadata` that mark a batch as one of our jobs. */
export function jobMarker({ jobId, storeId }: JobToCreate): Readonly<Record<string, string>> {
  return { [JOB_KEY]: jobId, [STORE_KEY]: storeId };
}

/** Which job of an installation a batch is, by its marker; null if it is none of them. */
export function markedJobId(batch: OpenAiBatch, ourStoreId: string): string | null {
  const { [JOB_KEY]: jobId, [STORE_KEY]: storeId } = batch.metadata;
  return typeof jobId === 'string' && storeId === ourStoreId ? jobId : null;
}

/**
 * Whether a batch is this job (docs/design/providers.md#look-up-of-jobs). The marker decides. A host that keeps
 * no metadata is recognised by the input file, which one job alone has uploaded.
 */
export function isOurs(batch: OpenAiBatch, job: JobToFind): boolean {
  const { [JOB_KEY]: jobId, [STORE_KEY]: storeId } = batch.metadata;
  if (jobId !== undefined) return jobId === job.jobId && storeId === job.storeId;
  return job.remoteInput !== null && batch.inputFileId === job.remoteInput;
}
