import { resultFileId, type ResultKind } from '../../core/names/ids';
import { fileKey } from '../../core/names/object-names';
import type { SealedAnswers } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';
import { ResultSink } from './result-sink';
import { ResultsRun } from './write-results';

/** Whose result files are made, and where. */
export interface FilesPlace {
  readonly store: ObjectStore;
  readonly batchId: string;
  readonly tenantFolder: string;
}

/** Result files that lines are written to. */
export interface UnfinishedFiles {
  readonly answers: SealedAnswers;
  readonly run: ResultsRun;
  readonly output: ResultSink;
  readonly error: ResultSink;
}

/** The caller closes `answers`, after it has ended or abandoned the files. @throws object_store_failed */
export async function beginFiles(
  place: FilesPlace,
  answers: SealedAnswers,
): Promise<UnfinishedFiles> {
  const { store, batchId } = place;
  try {
    const [output, error] = await Promise.all([
      ResultSink.open(store, resultKey(place, 'output'), answers.lineMemory),
      ResultSink.open(store, resultKey(place, 'error')),
    ]);
    return { answers, output, error, run: new ResultsRun({ batchId, output, error }) };
  } catch (failure) {
    await answers.close();
    throw failure;
  }
}

/** The store keeps nothing of files that have not been ended. */
export async function abandonFiles(
  { output, error }: UnfinishedFiles,
  failure: unknown,
): Promise<void> {
  await output.abandon(failure);
  await error.abandon(failure);
}

/** Object key of a result file. */
export function resultKey({ batchId, tenantFolder }: FilesPlace, kind: ResultKind): string {
  return fileKey(tenantFolder, resultFileId(batchId, kind));
}
