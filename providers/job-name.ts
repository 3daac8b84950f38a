import type { JobToCreate } from './provider';

/**
 * The name of a job at providers that take one. It has the ids of the installation and of the job, so a job of this
 * name is ours. Letters, digits, and `_.-`.
 */
export function jobName({ storeId, jobId }: Pick<JobToCreate, 'storeId' | 'jobId'>): string {
  return jobNamePrefix(storeId) + jobId;
}

/** How the names of an installation's jobs begin. */
export function jobNamePrefix(storeId: string): string {
  return `nightshift.${storeId}.`.replace(/[^\w.-]/g, '-');
}

/** The id of a job of the installation by its name; null for a job of someone else. */
export function jobIdOfName(name: string, storeId: string): string | null {
  const prefix = jobNamePrefix(storeId);
  if (!name.startsWith(prefix)) return null;
  return /^job_[0-9a-f]{32}$/.exec(name.slice(prefix.length))?.[0] ?? null;
}
