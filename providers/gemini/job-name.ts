import type { JobToCreate } from '../provider';

/**
 * The `displayName` of a job, which marks the batch as ours (docs/design/providers.md#look-up-of-jobs). Display names
 * need not be unique.
 */
export function jobName({ storeId, jobId }: Pick<JobToCreate, 'storeId' | 'jobId'>): string {
  return `nightshift/${storeId}/${jobId}`;
}
