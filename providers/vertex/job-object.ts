import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import { jobStateOf } from '../google-models/job-states';
import { readRpcStatus } from '../google-models/rpc-status';
import type { JobCounts } from '../../core/delegation/job-counts';
import { hasEnded } from '../job-end';
import type { CreatedJob, JobStatus } from '../provider';

/** A `BatchPredictionJob`: its status, and what tells whose it is. */
export interface VertexJob {
  readonly status: JobStatus;
  readonly created: CreatedJob;
  readonly labels: Readonly<Record<string, unknown>>;
}

const NAME = /\/batchPredictionJobs\/([^/]+)$/;
const MAX_STATE = 100;

/**
 * Reads a job (https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.batchPredictionJobs);
 * null if it is none: it has no name, or no state.
 */
export function readJob(json: unknown, mask: (text: string) => string): VertexJob | null {
  if (!isJsonObject(json)) return null;
  const { name, state: word, labels, createTime } = json;
  const [, id = ''] = NAME.exec(typeof name === 'string' ? name : '') ?? [];
  if (id === '' || typeof word !== 'string') return null;
  const createdMs = typeof createTime === 'string' ? Date.parse(createTime) : NaN;
  return {
    status: readStatus({ id, word, json, mask }),
    created: { externalId: id, createdAtMs: Number.isNaN(createdMs) ? null : createdMs },
    labels: isJsonObject(labels) ? labels : {},
  };
}

function readStatus(read: {
  readonly id: string;
  readonly word: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly mask: (text: string) => string;
}): JobStatus {
  const { id, word, json, mask } = read;
  const known = jobStateOf(word);
  const state = known ?? 'running';
  const error = readRpcStatus(json['error']);
  const folder = outputFolder(json['outputInfo']);
  const isFailed = state === 'failed';
  return {
    externalId: id,
    state,
    providerState: word.slice(0, MAX_STATE),
    isKnownState: known !== null,
    counts: readCounts(json['completionStats'], hasEnded(state)),
    error: error === null ? null : boundedError(error, mask),
    lineErrors: [],
    // A job with an output has run, and its lines are paid for.
    isQuotaRefusal: isFailed && folder === null && error?.isQuotaRefusal === true,
    resultFiles: folder === null ? [] : [folder],
    hasAllResults: isFailed || (hasEnded(state) && folder !== null),
    usage: null,
  };
}

/** The folder that the job writes to, below the prefix that it was created with. */
function outputFolder(info: unknown): string | null {
  const folder: unknown = isJsonObject(info) ? info['gcsOutputDirectory'] : null;
  return typeof folder === 'string' && folder !== '' ? folder.replace(/\/$/, '') : null;
}

/** Numbers are texts. Those that are 0 may be absent, and -1 stands for an unknown one. */
function readCounts(stats: unknown, isEnded: boolean): JobCounts | null {
  if (!isJsonObject(stats)) return null;
  const completed = countOf(stats['successfulCount']);
  const failed = countOf(stats['failedCount']);
  const incomplete = countOf(stats['incompleteCount']);
  if (completed === null || failed === null) return null;
  if (incomplete === null && !isEnded) return null;
  return { total: completed + failed + (incomplete ?? 0), completed, failed };
}

function countOf(value: unknown): number | null {
  const count = value === undefined ? 0 : Number(value);
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}
