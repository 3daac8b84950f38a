import { isJsonObject } from '../../core/openai/json-object';
import type { JobCounts } from '../../core/delegation/job-counts';
import { boundedError } from '../call-result';
import { readRpcStatus, type RpcStatus } from '../google-models/rpc-status';
import type { CreatedJob, JobState, JobStatus } from '../provider';

/** A recording of a job that has ended. */
export interface RecognizedFile {
  /** Its address. */
  readonly source: string;
  /** The address of its transcript; null without one. */
  readonly transcript: string | null;
  /** Why there is none. */
  readonly error: RpcStatus | null;
}

/** A long-running operation of `batchRecognize`. */
export interface SpeechOperation {
  readonly created: CreatedJob;
  /** Beginning of the addresses of the transcripts, as the create stated it; null for an operation of another kind. */
  readonly output: string | null;
  readonly isDone: boolean;
  readonly error: RpcStatus | null;
  readonly files: readonly RecognizedFile[];
}

type Members = Readonly<Record<string, unknown>>;

const NAME = /\/operations\/([^/]+)$/;

/**
 * Reads an operation (https://cloud.google.com/speech-to-text/v2/docs/reference/rest/v2/projects.locations.operations);
 * null if it is none.
 */
export function readOperation(json: unknown): SpeechOperation | null {
  if (!isJsonObject(json)) return null;
  const { name, done, error } = json;
  const [, externalId] = NAME.exec(typeof name === 'string' ? name : '') ?? [];
  if (externalId === undefined) return null;
  const metadata = membersOf(json['metadata']);
  const createdAtMs = Date.parse(textOf(metadata['createTime']) ?? '');
  return {
    created: { externalId, createdAtMs: Number.isNaN(createdAtMs) ? null : createdAtMs },
    output: outputOf(metadata['batchRecognizeRequest']),
    isDone: done === true,
    error: readRpcStatus(error),
    files: Object.entries(membersOf(membersOf(json['response'])['results'])).map(fileOf),
  };
}

/** A look at a job. An operation has no word for its state, so the words are ours. */
export function speechStatus(
  { created, isDone, error, files }: SpeechOperation,
  mask: (text: string) => string,
): JobStatus {
  const state = stateOf(isDone, error);
  return {
    externalId: created.externalId,
    state,
    providerState: isDone ? (error?.code ?? 'done') : 'running',
    isKnownState: true,
    counts: state === 'completed' ? countsOf(files) : null,
    error: error === null ? null : boundedError(error, mask),
    lineErrors: [],
    isQuotaRefusal: state === 'failed' && error?.isQuotaRefusal === true,
    resultFiles: files.flatMap(({ transcript }) => transcript ?? []),
    hasAllResults: files.every(({ transcript, error: why }) => transcript !== null || why !== null),
    usage: null,
  };
}

function stateOf(isDone: boolean, error: RpcStatus | null): JobState {
  if (!isDone) return 'running';
  if (error === null) return 'completed';
  return error.isCancelled ? 'cancelled' : 'failed';
}

function countsOf(files: readonly RecognizedFile[]): JobCounts {
  const failed = files.filter(({ error }) => error !== null).length;
  return { total: files.length, completed: files.length - failed, failed };
}

function fileOf([source, value]: [string, unknown]): RecognizedFile {
  const { cloudStorageResult, uri, error } = membersOf(value);
  const transcript = textOf(membersOf(cloudStorageResult)['uri']) ?? textOf(uri);
  return { source, transcript, error: readRpcStatus(error) };
}

function outputOf(request: unknown): string | null {
  const config = membersOf(membersOf(request)['recognitionOutputConfig']);
  return textOf(membersOf(config['gcsOutputConfig'])['uri']);
}

function membersOf(value: unknown): Members {
  return isJsonObject(value) ? value : {};
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
