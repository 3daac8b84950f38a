import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import { hasEnded } from '../job-end';
import type { JobCounts, JobUsage } from '../../core/delegation/job-counts';
import type { JobState, JobStatus, LineError, ProviderError } from '../provider';
import { isQuotaCode, textOf } from './error-object';

/** A batch as the provider shows it: its status, and what tells whose it is. */
export interface OpenAiBatch {
  readonly status: JobStatus;
  /** Unix ms; null if the provider does not say. */
  readonly createdAtMs: number | null;
  readonly inputFileId: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
}

type Members = Readonly<Record<string, unknown>>;

const STATES: ReadonlyMap<string, JobState> = new Map([
  ['validating', 'submitted'],
  ['in_progress', 'running'],
  ['finalizing', 'running'],
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['expired', 'expired'],
  ['cancelling', 'cancelling'],
  ['canceling', 'cancelling'],
  ['cancelled', 'cancelled'],
  ['canceled', 'cancelled'],
]);
/** Characters of a state in the provider's word. */
export const MAX_STATE = 100;

/** Reads a batch object; null if it is none: it has no id, or no status. */
export function readBatch(json: unknown, mask: (text: string) => string): OpenAiBatch | null {
  if (!isJsonObject(json)) return null;
  const { id, status: word, metadata, input_file_id: input } = json;
  if (typeof id !== 'string' || id === '' || typeof word !== 'string') return null;
  const state = STATES.get(word.toLowerCase());
  const status = readStatus({ id, word, state: state ?? 'running', json, mask });
  return {
    status: { ...status, isKnownState: state !== undefined },
    createdAtMs: timeOf(json['created_at']),
    inputFileId: textOf(input),
    metadata: isJsonObject(metadata) ? metadata : {},
  };
}

function readStatus(read: {
  readonly id: string;
  readonly word: string;
  readonly state: JobState;
  readonly json: Members;
  readonly mask: (text: string) => string;
}): Omit<JobStatus, 'isKnownState'> {
  const { id, word, state, json, mask } = read;
  const errors = readErrors(json['errors'], mask);
  const counts = readCounts(json['request_counts']);
  const output = textOf(json['output_file_id']);
  const error = textOf(json['error_file_id']);
  const whole =
    errors.find(({ line }) => line === null) ?? errors[0] ?? readError(json['error'], mask);
  return {
    externalId: id,
    state,
    providerState: word.slice(0, MAX_STATE),
    counts,
    error: whole === null ? null : { code: whole.code, message: whole.message },
    lineErrors: errors.flatMap(({ line, ...rest }) =>
      line === null ? [] : [{ ...rest, index: line - 1 }],
    ),
    isQuotaRefusal: state === 'failed' && errors.some(({ code }) => isQuotaCode(code)),
    resultFiles: [output, error].filter((file) => file !== null),
    hasAllResults: hasEnded(state) && hasPromised({ state, counts, output, error }),
    usage: readUsage(json['usage']),
  };
}

/**
 * Whether the files are there that an ended batch promises: files may appear after the end. A batch that
 * failed as a whole has none.
 */
export function hasPromised(ended: {
  readonly state: JobState;
  readonly counts: JobCounts | null;
  readonly output: string | null;
  readonly error: string | null;
}): boolean {
  const { state, counts, output, error } = ended;
  if (state === 'failed') return true;
  // Without counts nothing promises that there will be no other file.
  if (counts === null) return output !== null && error !== null;
  const hasFile = output !== null || error !== null;
  const { total, completed, failed } = counts;
  if (completed > 0 && output === null) return false;
  if (failed > 0 && error === null) return false;
  return hasFile || state !== 'completed' || total === 0;
}

function readErrors(
  errors: unknown,
  mask: (text: string) => string,
): (Omit<LineError, 'index'> & { readonly line: number | null })[] {
  const data: unknown = isJsonObject(errors) ? errors['data'] : errors;
  if (!Array.isArray(data)) return [];
  return data.filter(isJsonObject).map((error) => ({
    ...boundedError(
      { code: textOf(error['code']), message: textOf(error['message']) ?? 'no message' },
      mask,
    ),
    param: textOf(error['param']),
    line: positiveOf(error['line']),
  }));
}

/** Together states the failure of a whole batch as one text. */
function readError(error: unknown, mask: (text: string) => string): ProviderError | null {
  const message = textOf(error);
  return message === null ? null : boundedError({ code: null, message }, mask);
}

function readCounts(counts: unknown): JobCounts | null {
  if (!isJsonObject(counts)) return null;
  const [total, completed, failed] = [counts['total'], counts['completed'], counts['failed']].map(
    countOf,
  );
  if (total == null || completed == null || failed == null) return null;
  return { total, completed, failed };
}

function readUsage(usage: unknown): JobUsage | null {
  if (!isJsonObject(usage)) return null;
  const inputTokens = countOf(usage['input_tokens']);
  const outputTokens = countOf(usage['output_tokens']);
  if (inputTokens === null || outputTokens === null) return null;
  const details = usage['input_tokens_details'];
  const cached = isJsonObject(details) ? countOf(details['cached_tokens']) : null;
  return { inputTokens, outputTokens, cachedTokens: cached ?? 0 };
}

/** A count; null if it is none. */
export function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function positiveOf(value: unknown): number | null {
  const count = countOf(value);
  return count === null || count === 0 ? null : count;
}

/** Unix seconds, or a date in ISO 8601, as Unix ms. */
export function timeOf(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : Number(value) * 1_000;
  return value === null || !Number.isFinite(ms) ? null : ms;
}
