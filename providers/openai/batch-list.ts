import { isJsonObject } from '../../core/openai/json-object';
import type { JobToFind, MarkedJob, MarkerToList } from '../provider';
import { hasEnded } from '../job-end';
import type { OpenAiBatch } from './batch-object';
import { textOf } from './error-object';
import { isOurs, markedJobId } from './job-marker';

/** How a host lists its batches. */
export interface BatchListing {
  /** The query of a page, from its `?` on: of the first one without a cursor. */
  query(cursor: string | null): string;
  /** The batches of the page after `cursor`, and the cursor of the next one. Null if the answer is no page. */
  read(json: unknown, cursor: string | null): RawPage | null;
  /** Whether the newest batch comes first, so that a look-up ends at the first batch that is too old. */
  readonly isNewestFirst: boolean;
}

interface RawPage {
  readonly data: readonly unknown[];
  /** Null on the last page. */
  readonly next: string | null;
}

/** How pages of batches are read. */
interface ListedBatches {
  readonly listing: BatchListing;
  readBatch(json: unknown, mask: (text: string) => string): OpenAiBatch | null;
}

/** A page of the list of batches. */
export interface BatchPage {
  readonly batches: readonly OpenAiBatch[];
  /** The cursor of the next page; null on the last one. */
  readonly next: string | null;
  readonly isNewestFirst: boolean;
}

const PAGE_SIZE = 100;

/** OpenAI's list: https://platform.openai.com/docs/api-reference/batch/list. */
export const OPENAI_LISTING: BatchListing = {
  query: (cursor) =>
    `?limit=${PAGE_SIZE}${cursor === null ? '' : `&after=${encodeURIComponent(cursor)}`}`,
  read: (json) => {
    const data = dataOf(json);
    if (data === null || !isJsonObject(json) || json['has_more'] !== true) {
      return data === null ? null : { data, next: null };
    }
    const last = data.at(-1);
    const next = isJsonObject(last) ? textOf(last['id']) : null;
    // An empty page that promises more would be asked for again and again.
    return next === null ? null : { data, next };
  },
  isNewestFirst: true,
};

/** The member `data` of a list; null if there is none. */
export function dataOf(json: unknown): readonly unknown[] | null {
  const data: unknown = isJsonObject(json) ? json['data'] : null;
  return Array.isArray(data) ? (data as readonly unknown[]) : null;
}

/**
 * Reads a page; null if any of its batches cannot be read, because a job that was not recognised would be
 * created a second time.
 */
export function readPage(
  json: unknown,
  cursor: string | null,
  { listing, readBatch }: ListedBatches,
  mask: (text: string) => string,
): BatchPage | null {
  const page = listing.read(json, cursor);
  if (page === null) return null;
  const batches: OpenAiBatch[] = [];
  for (const one of page.data) {
    const batch = readBatch(one, mask);
    if (batch === null) return null;
    batches.push(batch);
  }
  return { batches, next: page.next, isNewestFirst: listing.isNewestFirst };
}

/** What a page says about a job: the job, `none` if it reaches back far enough, or `more`. */
export function searchPage(page: BatchPage, job: JobToFind): OpenAiBatch | 'none' | 'more' {
  for (const batch of page.batches) {
    if (isOurs(batch, job)) return batch;
    if (isOlder(batch, job.listFromMs) && page.isNewestFirst) return 'none';
  }
  return page.next === null ? 'none' : 'more';
}

/** The open jobs of an installation on a page, and whether later pages may have more. */
export function markedOn(
  page: BatchPage,
  { storeId, sinceMs }: MarkerToList,
): { readonly jobs: MarkedJob[]; readonly hasMore: boolean } {
  const young = page.batches.filter((batch) => !isOlder(batch, sinceMs));
  const jobs = young.flatMap((batch) => {
    const jobId = hasEnded(batch.status.state) ? null : markedJobId(batch, storeId);
    return jobId === null ? [] : [{ externalId: batch.status.externalId, jobId }];
  });
  const reachesBack = page.isNewestFirst && young.length < page.batches.length;
  return { jobs, hasMore: page.next !== null && !reachesBack };
}

function isOlder({ createdAtMs }: OpenAiBatch, thanMs: number): boolean {
  return createdAtMs !== null && createdAtMs < thanMs;
}
