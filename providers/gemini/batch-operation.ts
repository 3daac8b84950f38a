import { isJsonObject } from '../../core/openai/json-object';
import type { JobCounts } from '../../core/delegation/job-counts';
import { boundedError } from '../call-result';
import type { Json } from '../chat/values';
import { jobStateOf } from '../google-models/job-states';
import { readRpcStatus } from '../google-models/rpc-status';
import { hasEnded } from '../job-end';
import type { JobState, JobStatus } from '../provider';

/** A batch as the API shows it: its status, and what tells whose it is. */
export interface GeminiBatch {
  readonly status: JobStatus;
  /** Unix ms; null if the API does not say. */
  readonly createdAtMs: number | null;
  /** Empty without one. */
  readonly displayName: string;
}

const MAX_STATE = 100;
/** Of an operation without a state. */
const UNSPECIFIED = 'BATCH_STATE_UNSPECIFIED';

/**
 * Reads a batch, which is a long-running operation whose `metadata` is the batch
 * (https://ai.google.dev/api/batch-api); null if it is none.
 */
export function readBatchOperation(
  json: unknown,
  mask: (text: string) => string,
): GeminiBatch | null {
  if (!isJsonObject(json)) return null;
  const { name, metadata } = json;
  if (typeof name !== 'string' || name === '' || !isJsonObject(metadata)) return null;
  return {
    status: statusOf({ name, operation: json, metadata, mask }),
    createdAtMs: timeOf(metadata['createTime']),
    displayName: textOf(metadata['displayName']) ?? '',
  };
}

function statusOf(batch: {
  readonly name: string;
  readonly operation: Json;
  readonly metadata: Json;
  readonly mask: (text: string) => string;
}): JobStatus {
  const { name, operation, metadata, mask } = batch;
  const word = textOf(metadata['state']) ?? UNSPECIFIED;
  const known = word === UNSPECIFIED ? stateWithoutWord(operation) : jobStateOf(word);
  const state = known ?? 'running';
  const counts = countsOf(metadata['batchStats']);
  const error = readRpcStatus(operation['error']);
  const file = responsesFileOf(metadata['output']) ?? responsesFileOf(operation['response']);
  return {
    externalId: name,
    state,
    providerState: word.slice(0, MAX_STATE),
    isKnownState: known !== null,
    counts,
    error: error === null ? null : boundedError(error, mask),
    // The API blames no lines.
    lineErrors: [],
    isQuotaRefusal:
      state === 'failed' && error?.isQuotaRefusal === true && (counts?.completed ?? 0) === 0,
    resultFiles: file === null ? [] : [file],
    hasAllResults: hasEnded(state) && (file !== null || !promisesFile(state, counts)),
    usage: null,
  };
}

/** An operation says by itself whether it is done, and how. */
function stateWithoutWord({ done, error }: Json): JobState {
  if (done !== true) return 'submitted';
  return isJsonObject(error) ? 'failed' : 'completed';
}

/** An expired or failed batch has no results. A cancelled one has those that its counts tell of. */
function promisesFile(state: JobState, counts: JobCounts | null): boolean {
  if (state === 'completed') return counts?.total !== 0;
  return state === 'cancelled' && counts !== null && counts.completed + counts.failed > 0;
}

/** Numbers are texts, and a zero is left out, as in all JSON of Google. */
function countsOf(stats: unknown): JobCounts | null {
  if (!isJsonObject(stats)) return null;
  const [total, completed, failed] = [
    stats['requestCount'],
    stats['successfulRequestCount'],
    stats['failedRequestCount'],
  ].map(countOf);
  if (total == null || completed == null || failed == null) return null;
  return { total, completed, failed };
}

function countOf(value: unknown): number | null {
  const count = value === undefined ? 0 : Number(value);
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** The name of the file, such as `files/batch-1`; its place differs between versions of the API. */
function responsesFileOf(output: unknown): string | null {
  if (!isJsonObject(output)) return null;
  return textOf(output['responsesFile']) ?? responsesFileOf(output['output']);
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function timeOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN;
  return Number.isFinite(ms) ? ms : null;
}
