import type { StopCause } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { resultFileId, resultFileName, type ResultKind } from '../../core/names/ids';
import type { Manifest } from '../../core/journal/manifest';
import { fileKey } from '../../core/names/object-names';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ResultFile } from '../../storage/postgres/batches/types';
import { openLineSources, type LineSources } from './line-sources';
import { plannedLines, type PlanPlace } from './plan-offsets';
import { ResultSink } from './result-sink';
import { writeResults, type ResultsInput, type ResultTotals } from './write-results';

/** What making the result files takes. */
export interface MergeInput {
  readonly journal: Pick<JournalStore, 'openAnswers'>;
  readonly place: PlanPlace;
  readonly manifest: Manifest;
  /** The cause that the workflow came with; the manifest may be older and have none. */
  readonly cause: StopCause | null;
  /** Null where the row names no input any more. */
  readonly inputKey: string | null;
  readonly tenantFolder: string;
  /** Told how many bytes of answers came; throws when the activity is cancelled. */
  progress(answerBytes: number): void;
}

/** The durable files, and what was counted while they were made. */
export interface MergeResult {
  readonly totals: ResultTotals;
  readonly outputFile: ResultFile | null;
  readonly errorFile: ResultFile | null;
}

/**
 * Makes the result files of a manifest (execution §2). @throws object_corrupt where its seals do not
 * hold what it promises, input_missing where the input is gone and nobody has given the batch up,
 * plan_unreadable, object_store_failed
 */
export async function mergeBatch(input: MergeInput): Promise<MergeResult> {
  const { journal, place, manifest } = input;
  const check = () => input.progress(0);
  const answers = await journal.openAnswers(place.batchId, manifest.seals, check);
  try {
    const lines = await openLineSources(input);
    try {
      return await mergeInto(input, lines, answers);
    } finally {
      await lines.close();
    }
  } finally {
    await answers.close();
  }
}

async function mergeInto(
  input: MergeInput,
  lines: LineSources,
  answers: ResultsInput['answers'],
): Promise<MergeResult> {
  const { place, progress } = input;
  const { batchId } = place;
  const output = await ResultSink.open(place.store, keyOf(input, 'output'));
  const error = await ResultSink.open(place.store, keyOf(input, 'error'));
  try {
    const { open, unrouted } = lines;
    const found = { open, unrouted, answers, batchId, output, error, progress };
    const totals = addUnnamed(await writeResults(found), lines.unnamedLines);
    checkTotals(input, totals);
    await checkLines(input, totals);
    const outputFile = await finished(input, 'output', output);
    const errorFile = await finished(input, 'error', error);
    return { totals, outputFile, errorFile };
  } catch (failure) {
    await output.abandon(failure);
    await error.abandon(failure);
    throw failure;
  }
}

async function finished(
  input: MergeInput,
  kind: ResultKind,
  sink: ResultSink,
): Promise<ResultFile | null> {
  const { batchId } = input.place;
  const written = await sink.end();
  return (
    written && {
      id: resultFileId(batchId, kind),
      bytes: written.bytes,
      filename: resultFileName(batchId, kind),
      objectKey: keyOf(input, kind),
    }
  );
}

function keyOf({ place, tenantFolder }: MergeInput, kind: ResultKind): string {
  return fileKey(tenantFolder, resultFileId(place.batchId, kind));
}

/** Lines that nobody could name are counted all the same. */
function addUnnamed(totals: ResultTotals, lines: number): ResultTotals {
  const { total, completed, failed } = totals.counts;
  return { ...totals, counts: { total: total + lines, completed, failed: failed + lines } };
}

/** Every line exactly once, or no files at all: a frame too many or too few is damage. */
function checkTotals({ place, manifest }: MergeInput, totals: ResultTotals): void {
  const planned = Object.values(place.map.entries).reduce((sum, count) => sum + count, 0);
  const isWhole = totals.answered + totals.unanswered === planned;
  const isAnswered = manifest.cause !== null || totals.unanswered === 0;
  if (isWhole && isAnswered && totals.counts.total === place.map.line_count) return;
  const message = `the seals hold ${totals.answered} answers for ${planned} planned lines`;
  throw new NightshiftError('object_corrupt', message);
}

/**
 * As many lines as planned may still be other lines: seals of another plan, after a store was put back
 * in parts. Where every line is answered, a plan that is gone or damaged costs nobody the answers.
 */
async function checkLines({ place }: MergeInput, { lines }: ResultTotals): Promise<void> {
  const planned = await plannedLines(place).catch((error: unknown) => {
    if (isNightshiftError(error, 'plan_unreadable')) return null;
    throw error;
  });
  if (planned === null || planned.equals(lines)) return;
  throw new NightshiftError('object_corrupt', 'the seals answer other lines than were planned');
}
