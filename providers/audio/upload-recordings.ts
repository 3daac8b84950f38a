import type { IdempotentResult, UploadOptions } from '../provider';
import type { RemoteFolder } from '../remote-folder';
import {
  MissingRecording,
  openRecording,
  type Recording,
  type StagedRecording,
} from './staged-recording';

/** Where recordings go. */
export interface RecordingPlace {
  readonly folder: RemoteFolder;
  /** The name in the folder. */
  place(name: string, language: string | null): string;
}

/**
 * Copies the recordings of a job into a folder, one after the other, and returns their names there. A repetition
 * writes the same bytes under the same names. A file that is gone refuses the job.
 */
export async function uploadRecordings(
  staged: readonly StagedRecording[],
  { folder, place }: RecordingPlace,
  call: UploadOptions,
): Promise<IdempotentResult<readonly string[]>> {
  const names: string[] = [];
  for (const line of staged) {
    const opened = await openOrRefuse(line, call);
    if (opened.outcome !== 'ok') return opened;
    const { name: recording, language, input } = opened.value;
    const name = place(recording, language);
    const put = await folder.put(name, input, call);
    if (put.outcome !== 'ok') return put;
    names.push(name);
  }
  return { outcome: 'ok', value: names };
}

/** Opens all recordings of a job, for providers that ask for their names first. A file that is gone refuses it. */
export async function openRecordings(
  staged: readonly StagedRecording[],
  call: UploadOptions,
): Promise<IdempotentResult<readonly Recording[]>> {
  const recordings: Recording[] = [];
  for (const line of staged) {
    const opened = await openOrRefuse(line, call);
    if (opened.outcome !== 'ok') return opened;
    recordings.push(opened.value);
  }
  return { outcome: 'ok', value: recordings };
}

async function openOrRefuse(
  line: StagedRecording,
  call: UploadOptions,
): Promise<IdempotentResult<Recording>> {
  try {
    return { outcome: 'ok', value: await openRecording(line, call) };
  } catch (error) {
    if (!(error instanceof MissingRecording)) throw error;
    const { message } = error;
    const failure = { code: 'input_file_not_found', message, status: null, retryAfterMs: null };
    return { outcome: 'refused', failure };
  }
}
