import { isJsonObject } from '../../core/openai/json-object';
import type { JobToFind } from '../provider';
import { readBatchOperation, type GeminiBatch } from './batch-operation';
import { jobName } from './job-name';

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
 * Looks for a job in the pages of the list. The API does not document their order. So the search may end before the
 * last page only while all batches so far came newest first.
 */
export class BatchSearch {
  readonly #name: string;
  readonly #listFromMs: number;
  #isNewestFirst = true;
  #lastMs = Infinity;

  constructor(job: JobToFind) {
    this.#name = jobName(job);
    this.#listFromMs = job.listFromMs;
  }

  /** What a page says: the job, `none` if the list goes back far enough, or `more`. */
  read({ batches, next }: GeminiPage): GeminiBatch | 'none' | 'more' {
    const found = batches.find(({ displayName }) => displayName === this.#name);
    if (found !== undefined) return found;
    for (const { createdAtMs } of batches) {
      if (createdAtMs === null || createdAtMs > this.#lastMs) this.#isNewestFirst = false;
      this.#lastMs = createdAtMs ?? this.#lastMs;
    }
    const isBack = this.#isNewestFirst && this.#lastMs < this.#listFromMs;
    return next === null || isBack ? 'none' : 'more';
  }
}
