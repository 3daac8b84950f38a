import { isJsonObject } from '../../core/openai/json-object';
import type { JobToFind } from '../provider';
import { readBatch, type OpenAiBatch } from './batch-object';
import { isOurs } from './job-marker';

/** A page of the list of batches, newest first. */
export interface BatchPage {
  readonly batches: readonly OpenAiBatch[];
  /** The id after which the next page begins; null on the last page. */
  readonly next: string | null;
}

/**
 * Reads a page; null if any of its batches cannot be read, because a job that was not recognised would be
 * created a second time.
 */
export function readPage(json: unknown, mask: (text: string) => string): BatchPage | null {
  const data: unknown = isJsonObject(json) ? json['data'] : null;
  if (!isJsonObject(json) || !Array.isArray(data)) return null;
  const batches: OpenAiBatch[] = [];
  for (const one of data as readonly unknown[]) {
    const batch = readBatch(one, mask);
    if (batch === null) return null;
    batches.push(batch);
  }
  const last = batches.at(-1);
  if (json['has_more'] !== true) return { batches, next: null };
  // An empty page that promises more would be asked for again and again.
  return last === undefined ? null : { batches, next: last.status.externalId };
}

/** What a page says about a job: the job, `none` if it reaches back far enough, or `more`. */
export function searchPage(page: BatchPage, job: JobToFind): OpenAiBatch | 'none' | 'more' {
  for (const batch of page.batches) {
    if (isOurs(batch, job)) return batch;
    if (batch.createdAtMs !== null && batch.createdAtMs < job.listFromMs) return 'none';
  }
  return page.next === null ? 'none' : 'more';
}
