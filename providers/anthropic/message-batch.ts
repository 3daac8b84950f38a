import { isJsonObject } from '../../core/openai/json-object';
import type { Json } from '../chat/values';
import type { JobState, JobStatus } from '../provider';

/** A Message Batch as the provider shows it. */
export interface MessageBatch {
  readonly status: JobStatus;
  /** Unix ms. */
  readonly createdAtMs: number;
  /** Requests of the batch. Their states add up to it from the beginning. */
  readonly lines: number;
}

const COUNTS = ['processing', 'succeeded', 'errored', 'canceled', 'expired'] as const;
type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;
const MAX_STATE = 100;

/**
 * Reads a Message Batch (https://platform.claude.com/docs/en/api/retrieving-message-batches); null if it is none: it
 * has no id, no status, no counts, or no time.
 */
export function readMessageBatch(json: unknown): MessageBatch | null {
  if (!isJsonObject(json)) return null;
  const { id, processing_status: word, created_at: createdAt } = json;
  const counts = countsOf(json['request_counts']);
  const createdAtMs = typeof createdAt === 'string' ? Date.parse(createdAt) : NaN;
  if (typeof id !== 'string' || id === '' || typeof word !== 'string') return null;
  if (counts === null || Number.isNaN(createdAtMs)) return null;
  return {
    status: { externalId: id, ...statusOf(word, json, counts) },
    createdAtMs,
    lines: totalOf(counts),
  };
}

function statusOf(word: string, json: Json, counts: Counts): Omit<JobStatus, 'externalId'> {
  const state = stateOf(word, counts);
  const isOver = word === 'ended';
  const results = typeof json['results_url'] === 'string';
  const { succeeded, processing } = counts;
  const total = totalOf(counts);
  return {
    state: state ?? 'running',
    providerState: word.slice(0, MAX_STATE),
    isKnownState: state !== null,
    counts: { total, completed: succeeded, failed: total - succeeded - processing },
    // A batch never fails as a whole: each request has its own end.
    ...{ error: null, lineErrors: [], isQuotaRefusal: false, usage: null },
    resultFiles: isOver && results ? [json['id'] as string] : [],
    hasAllResults: isOver && results,
  };
}

/** The end of a batch is the end of its requests. Null for a word that we do not know. */
function stateOf(word: string, { canceled, expired }: Counts): JobState | null {
  switch (word) {
    case 'in_progress':
      return 'running';
    case 'canceling':
      return 'cancelling';
    case 'ended':
      if (canceled > 0) return 'cancelled';
      return expired > 0 ? 'expired' : 'completed';
    default:
      return null;
  }
}

function countsOf(json: unknown): Counts | null {
  if (!isJsonObject(json)) return null;
  const counts = COUNTS.map((name) => [name, json[name]] as const);
  const isCounted = counts.every(([, value]) => Number.isSafeInteger(value));
  return isCounted ? (Object.fromEntries(counts) as Counts) : null;
}

function totalOf(counts: Counts): number {
  return COUNTS.reduce((sum, name) => sum + counts[name], 0);
}
