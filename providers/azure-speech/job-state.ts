import { isJsonObject } from '../../core/openai/json-object';
import { boundedError } from '../call-result';
import type { JobState, JobStatus, ProviderError } from '../provider';

const STATES: Readonly<Record<string, JobState>> = {
  notstarted: 'submitted',
  running: 'running',
  succeeded: 'completed',
  failed: 'failed',
};

/** What the adapter reads of a transcription: https://learn.microsoft.com/rest/api/speechtotext/transcriptions/get. */
export interface SpeechJob {
  readonly externalId: string;
  readonly displayName: string;
  readonly createdAtMs: number | null;
  readonly state: JobState;
  readonly word: string;
  readonly isKnownState: boolean;
  readonly error: ProviderError | null;
}

/** How the recordings of an ended job went, by its report. */
export interface SpeechReport {
  readonly succeeded: number;
  readonly failed: readonly FailedRecording[];
}

/** A recording that was not transcribed. */
export interface FailedRecording extends ProviderError {
  /** Its address. */
  readonly source: string;
  /** Whether the recording itself is to blame. */
  readonly isUnreadable: boolean;
}

/** Kinds of errors that name the recording. */
const UNREADABLE = /^(Invalid(Data|Audio|Media)|Unsupported)/i;

/** The address of a job, with its id. */
const OWN_ADDRESS = /\/transcriptions\/([^/?]+)(\?|$)/;

/** Reads a transcription; null if it is something else. */
export function readSpeechJob(json: unknown): SpeechJob | null {
  if (!isJsonObject(json)) return null;
  const { self, status, displayName, createdDateTime, properties } = json;
  const externalId = typeof self === 'string' ? OWN_ADDRESS.exec(self)?.[1] : undefined;
  if (externalId === undefined || typeof status !== 'string') return null;
  const known = STATES[status.toLowerCase()];
  const createdAtMs = typeof createdDateTime === 'string' ? Date.parse(createdDateTime) : NaN;
  return {
    externalId,
    displayName: typeof displayName === 'string' ? displayName : '',
    createdAtMs: Number.isNaN(createdAtMs) ? null : createdAtMs,
    state: known ?? 'running',
    word: status.slice(0, 100),
    isKnownState: known !== undefined,
    error: known === 'failed' ? errorOf(properties) : null,
  };
}

/** A look at a job. @param report null if the job has none yet, or has not ended */
export function speechStatus(
  job: SpeechJob,
  report: SpeechReport | null,
  mask: (text: string) => string,
): JobStatus {
  const { externalId, state, word, isKnownState, error } = job;
  const failed = report?.failed.length ?? 0;
  const succeeded = report?.succeeded ?? 0;
  const counts = { total: succeeded + failed, completed: succeeded, failed };
  return {
    externalId,
    state,
    providerState: word,
    isKnownState,
    counts: report === null ? null : counts,
    error: error === null ? null : boundedError(error, mask),
    lineErrors: [],
    isQuotaRefusal: false,
    // A job whose recordings have all failed may count as failed, and has a report nevertheless.
    resultFiles: state === 'completed' || report !== null ? [`${externalId}/files`] : [],
    hasAllResults: state !== 'completed' || report !== null,
    usage: null,
  };
}

/** Reads the report of a job; null if it is something else. */
export function readSpeechReport(json: unknown): SpeechReport | null {
  if (!isJsonObject(json) || !Array.isArray(json['details'])) return null;
  const details = json['details'].filter(isJsonObject);
  const failed = details.filter(({ status }) => status !== 'Succeeded');
  return {
    succeeded: details.length - failed.length,
    failed: failed.map(({ source, errorKind, errorMessage }) => ({
      source: textOr(source, ''),
      code: textOr(errorKind, '') === '' ? null : textOr(errorKind, '').slice(0, 100),
      message: textOr(errorMessage, 'no reason'),
      isUnreadable: UNREADABLE.test(textOr(errorKind, '')),
    })),
  };
}

function errorOf(properties: unknown): ProviderError {
  const error = isJsonObject(properties) ? properties['error'] : undefined;
  if (!isJsonObject(error)) return { code: null, message: 'Azure Speech names no reason.' };
  const code = textOr(error['code'], '');
  return { code: code === '' ? null : code, message: textOr(error['message'], 'no reason') };
}

function textOr(value: unknown, other: string): string {
  return typeof value === 'string' ? value : other;
}
