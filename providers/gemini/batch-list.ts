import { isJsonObject } from '../../core/openai/json-object';
import { hasEnded } from '../job-end';
import { jobIdOfName, jobName } from '../job-name';
import type { JobToFind, MarkedJob, MarkerToList } from '../provider';
import { readBatchOperation, type GeminiBatch } from './batch-operation';

/** A page of the list of batches. */
export interface GeminiPage {
  readonly batches: readonly GeminiBatch[];
  /** The token of the next page; null on the last one. */
  readonly next: string | null;
}

/**
 * Reads a page; null if any of its batches cannot be read, because a job that was not recognised would be created a
 * second time. A list without entries is an empty object.
 */
export function readBatchPage(json: unknown, mask: (text: string) => string): GeminiPage | null {
  if (!isJsonObject(json)) return null;
  const { operations = [], nextPageToken: next } = json;
  if (!Array.isArray(operations)) return null;
  const batches: GeminiBatch[] = [];
  for (const one of operations as readonly unknown[]) {
    const batch = readBatchOperation(one, mask);
    if (batch === null) return null;
    batches.push(batch);
  }
  return { batches, next: typeof next === 'string' && next !== '' ? next : null };
}

/**
 * How far back the pages of the list go. The API does not document their order. So the list may be left before its
 * last page only while all batches so far came newest first.
 */
class PagesRead {
  readonly #fromMs: number;
  #isNewestFirst = true;
  #lastMs = Infinity;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** Whether no further page can have a batch that matters. */
  isEnough({ batches, next }: GeminiPage): boolean {
    for (const { createdAtMs } of batches) {
      if (createdAtMs === null || createdAtMs > this.#lastMs) this.#isNewestFirst = false;
      this.#lastMs = createdAtMs ?? this.#lastMs;
    }
    return next === null || (this.#isNewestFirst && this.#lastMs < this.#fromMs);
  }
}

/** Looks for a job in the pages of the list. */
export class BatchSearch {
  readonly #name: string;
  readonly #pages: PagesRead;

  constructor(job: JobToFind) {
    this.#name = jobName(job);
    this.#pages = new PagesRead(job.listFromMs);
  }

  /** What a page says: the job, `none` if the list goes back far enough, or `more`. */
  read(page: GeminiPage): GeminiBatch | 'none' | 'more' {
    const found = page.batches.find(({ displayName }) => displayName === this.#name);
    return found ?? (this.#pages.isEnough(page) ? 'none' : 'more');
  }
}

/** Collects the open jobs of an installation from the pages of the list (docs/design/delegation.md#orphans). */
export class MarkedBatches {
  readonly #marker: MarkerToList;
  readonly #pages: PagesRead;
  readonly found: MarkedJob[] = [];

  constructor(marker: MarkerToList) {
    this.#marker = marker;
    this.#pages = new PagesRead(marker.sinceMs);
  }

  /** @returns whether more pages are to be read */
  read(page: GeminiPage): boolean {
    const { storeId, sinceMs } = this.#marker;
    for (const { status, displayName, createdAtMs } of page.batches) {
      const jobId = jobIdOfName(displayName, storeId);
      const isRecent = createdAtMs === null || createdAtMs >= sinceMs;
      if (jobId === null || !isRecent || hasEnded(status.state)) continue;
      this.found.push({ externalId: status.externalId, jobId });
    }
    return !this.#pages.isEnough(page);
  }
}
