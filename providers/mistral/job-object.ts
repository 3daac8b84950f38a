import type { JobCounts } from '../../core/delegation/job-counts';
import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import { countOf, hasPromised, MAX_STATE, timeOf, type OpenAiBatch } from '../openai/batch-object';
import { textOf, type OpenAiError } from '../openai/error-object';
import { hasEnded } from '../job-end';
import type { JobState, ProviderError } from '../provider';

type Mask = (text: string) => string;

const STATES: ReadonlyMap<string, JobState> = new Map([
  ['queued', 'submitted'],
  ['running', 'running'],
  ['success', 'completed'],
  ['failed', 'failed'],
  ['timeout_exceeded', 'expired'],
  ['cancellation_requested', 'cancelling'],
  ['cancelled', 'cancelled'],
]);

/** Reads a batch job of Mistral; null if it is none: it has no id, or no status. */
export function readMistralJob(json: unknown, mask: Mask): OpenAiBatch | null {
  if (!isJsonObject(json)) return null;
  const { id, status: word, metadata, input_files: inputs, errors } = json;
  if (typeof id !== 'string' || id === '' || typeof word !== 'string') return null;
  const known = STATES.get(word.toLowerCase());
  const state = known ?? 'running';
  const counts = readCounts(json);
  const output = textOf(json['output_file']);
  const error = textOf(json['error_file']);
  const isFailed = state === 'failed';
  return {
    status: {
      externalId: id,
      state,
      providerState: word.slice(0, MAX_STATE),
      isKnownState: known !== undefined,
      counts,
      // The errors of a job that did not fail as a whole are those of single lines.
      error: isFailed ? firstError(errors, mask) : null,
      lineErrors: [],
      isQuotaRefusal: false,
      resultFiles: [output, error].filter((file) => file !== null),
      hasAllResults: hasEnded(state) && hasPromised({ state, counts, output, error }),
      usage: null,
    },
    createdAtMs: timeOf(json['created_at']),
    inputFileId: Array.isArray(inputs) ? textOf(inputs[0]) : null,
    metadata: isJsonObject(metadata) ? metadata : {},
  };
}

/**
 * Reads an error of Mistral, which has three forms: `{"message", "type", "code"}`, a message that is an object with
 * `detail`, and `{"detail"}` alone. Null if the body is something else, so another server wrote it.
 */
export function readMistralError(json: unknown): OpenAiError | null {
  if (!isJsonObject(json)) return null;
  const { message, detail, code, type } = json;
  const nested = isJsonObject(message) ? message['detail'] : undefined;
  const text = textOf(message) ?? detailOf(nested) ?? detailOf(detail);
  if (text === null) return null;
  // A used-up limit is a 429, whose status is enough.
  return { code: textOf(code) ?? textOf(type), message: text, isQuotaRefusal: false };
}

function detailOf(detail: unknown): string | null {
  if (!Array.isArray(detail)) return textOf(detail);
  const [first] = detail as readonly unknown[];
  return isJsonObject(first) ? textOf(first['msg']) : null;
}

function readCounts(json: Readonly<Record<string, unknown>>): JobCounts | null {
  const total = countOf(json['total_requests']);
  const completed = countOf(json['succeeded_requests']);
  const failed = countOf(json['failed_requests']);
  return total === null || completed === null || failed === null
    ? null
    : { total, completed, failed };
}

function firstError(errors: unknown, mask: Mask): ProviderError | null {
  const first: unknown = Array.isArray(errors) ? errors[0] : null;
  const message = isJsonObject(first) ? textOf(first['message']) : null;
  return message === null ? null : boundedError({ code: null, message }, mask);
}
