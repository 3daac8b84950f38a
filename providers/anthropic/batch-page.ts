import { isJsonObject } from '../../core/openai/json-object';
import type { JobToFind } from '../provider';
import { readMessageBatch, type MessageBatch } from './message-batch';

/** A page of the list of batches, newest first. */
export interface BatchPage {
  readonly batches: readonly MessageBatch[];
  /** The cursor of the next page; null on the last one. */
  readonly next: string | null;
}

/**
 * Reads a page (https://platform.claude.com/docs/en/api/listing-message-batches); null if any of its batches cannot
 * be read, because that batch may be the job.
 */
export function readPage(json: unknown): BatchPage | null {
  if (!isJsonObject(json) || !Array.isArray(json['data'])) return null;
  const batches: MessageBatch[] = [];
  for (const one of json['data'] as readonly unknown[]) {
    const batch = readMessageBatch(one);
    if (batch === null) return null;
    batches.push(batch);
  }
  if (json['has_more'] !== true) return { batches, next: null };
  const last = batches.at(-1);
  // An empty page that promises more would be asked for again and again.
  return last === undefined ? null : { batches, next: last.status.externalId };
}

/** The batches of a page that may be the job, and whether older ones may be too. */
export function searchPage(
  { batches, next }: BatchPage,
  { lines, listFromMs }: Pick<JobToFind, 'lines' | 'listFromMs'>,
): { readonly candidates: readonly string[]; readonly isLast: boolean } {
  const isRecent = ({ createdAtMs }: MessageBatch) => createdAtMs >= listFromMs;
  return {
    candidates: batches
      .filter((batch) => isRecent(batch) && batch.lines === lines)
      .map(({ status }) => status.externalId),
    isLast: next === null || !batches.every(isRecent),
  };
}
