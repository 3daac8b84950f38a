import type { JobToCreate } from './provider';

/**
 * The name of a job at providers that take one. It has the ids of the installation and of the job, so a job of this
 * name is ours. Letters, digits, and `_.-`.
 */
export function jobName({ storeId, jobId }: Pick<JobToCreate, 'storeId' | 'jobId'>): string {
  return `nightshift.${storeId}.${jobId}`.replace(/[^\w.-]/g, '-');
}
