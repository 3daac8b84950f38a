import type { IdempotentResult, UploadOptions } from '../provider';
import type { RemoteFolder } from '../remote-folder';
import { MissingRecording, openRecording, type StagedRecording } from './staged-recording';

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
    const recording = await openRecording(line, call).catch(keepMissing);
    if (recording instanceof MissingRecording) return refused(recording);
    const name = place(recording.name, recording.language);
    const put = await folder.put(name, recording.input, call);
    if (put.outcome !== 'ok') return put;
    names.push(name);
  }
  return { outcome: 'ok', value: names };
}

function keepMissing(error: unknown): MissingRecording {
  if (error instanceof MissingRecording) return error;
  throw error;
}

function refused({ message }: MissingRecording): IdempotentResult<never> {
  const failure = { code: 'input_file_not_found', message, status: null, retryAfterMs: null };
  return { outcome: 'refused', failure };
}
