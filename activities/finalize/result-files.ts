import { NightshiftError, isNightshiftError } from '../../core/errors';
import { resultFileId, resultFileName, type ResultKind } from '../../core/names/ids';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ResultFile } from '../../storage/postgres/batches/types';
import type { LineChecksum } from './line-checksum';
import { type LineSources, type LineSourcesInput, openLineSources } from './line-sources';
import { type BatchPlan, plannedChecksum } from './plan-offsets';
import type { ResultDraft } from './result-draft';
import type { ResultSink } from './result-sink';
import { abandonFiles, beginFiles, resultKey } from './unfinished-files';
import type { FilesPlace, UnfinishedFiles } from './unfinished-files';
import type { ResultTotals } from './write-results';

/** What {@link makeResultFiles} needs. */
export interface ResultFilesInput extends LineSourcesInput {
  readonly journal: Pick<JournalStore, 'openAnswers'>;
  readonly tenantFolder: string;
  /** Files that were begun before the manifest was written; null if there are none. */
  readonly draft: ResultDraft | null;
  /** Called with the bytes of answers merged since the last call; throws when the attempt must end. */
  onAnswers(answerBytes: number): void;
}

/** The durable files, and what was counted while they were made. */
export interface MadeResultFiles {
  readonly totals: ResultTotals;
  readonly outputFile: ResultFile | null;
  readonly errorFile: ResultFile | null;
}

/**
 * Makes the result files of a manifest (docs/design/journal.md#merge). @throws object_corrupt if its seals
 * do not hold what it says; input_missing if the input is gone and there is no cause; plan_unreadable;
 * object_store_failed
 */
export async function makeResultFiles(input: ResultFilesInput): Promise<MadeResultFiles> {
  const files = await openFiles(input);
  try {
    const lines = await openLineSources(input);
    try {
      return await writeFiles(input, lines, files);
    } finally {
      await lines.close();
    }
  } catch (failure) {
    await abandonFiles(files, failure);
    throw failure;
  } finally {
    await files.answers.close();
  }
}

async function openFiles(input: ResultFilesInput): Promise<UnfinishedFiles> {
  const { journal, plan, manifest, draft } = input;
  const check = () => input.onAnswers(0);
  const begun = (await draft?.goOn(manifest, check)) ?? null;
  if (begun !== null) return begun;
  const answers = await journal.openAnswers(plan.batchId, manifest.seals, check);
  return beginFiles(placeOf(input), answers);
}

async function writeFiles(
  input: ResultFilesInput,
  { uncovered, unrouted, unnamedLines }: LineSources,
  { run, answers, output, error }: UnfinishedFiles,
): Promise<MadeResultFiles> {
  // Read beside the merge, which mostly waits for its own reads.
  const planned = plannedLines(input.plan);
  planned.catch(() => undefined);
  await run.take({ answers, uncovered, unrouted, onAnswers: (bytes) => input.onAnswers(bytes) });
  const totals = addUnnamed(run.totals(), unnamedLines);
  checkTotals(input, totals);
  checkLines(totals, await planned);
  const outputFile = await finished(input, 'output', output);
  const errorFile = await finished(input, 'error', error);
  return { totals, outputFile, errorFile };
}

async function finished(
  input: ResultFilesInput,
  kind: ResultKind,
  sink: ResultSink,
): Promise<ResultFile | null> {
  const { batchId } = input.plan;
  const written = await sink.end();
  return (
    written && {
      id: resultFileId(batchId, kind),
      bytes: written.bytes,
      filename: resultFileName(batchId, kind),
      objectKey: resultKey(placeOf(input), kind),
    }
  );
}

function placeOf({ plan: { store, batchId }, tenantFolder }: ResultFilesInput): FilesPlace {
  return { store, batchId, tenantFolder };
}

/** Counts lines as failed that are not written, because their `custom_id` is unknown. */
function addUnnamed(totals: ResultTotals, lines: number): ResultTotals {
  const { total, completed, failed } = totals.counts;
  return { ...totals, counts: { total: total + lines, completed, failed: failed + lines } };
}

/** Checks that every line is counted exactly once. Otherwise the journal is damaged, and no file is made. */
function checkTotals({ plan, manifest }: ResultFilesInput, totals: ResultTotals): void {
  const planned = Object.values(plan.map.entries).reduce((sum, count) => sum + count, 0);
  const isWhole = totals.answered + totals.unanswered === planned;
  const isAnswered = manifest.cause !== null || totals.unanswered === 0;
  if (isWhole && isAnswered && totals.counts.total === plan.map.line_count) return;
  const message = `the seals hold ${totals.answered} answers for ${planned} planned lines`;
  throw new NightshiftError('object_corrupt', message);
}

/** The checksum of the planned lines; null if the plan is missing or damaged. */
async function plannedLines(plan: BatchPlan): Promise<LineChecksum | null> {
  return plannedChecksum(plan).catch((error: unknown) => {
    if (isNightshiftError(error, 'plan_unreadable')) return null;
    throw error;
  });
}

/**
 * Checks that the lines are the planned ones. After a partial restore of the store, seals of another plan
 * may have the right number of lines. Without a readable plan, the answers are delivered without this check.
 */
function checkLines({ lines }: ResultTotals, planned: LineChecksum | null): void {
  if (planned === null || planned.equals(lines)) return;
  throw new NightshiftError('object_corrupt', 'the seals answer other lines than were planned');
}
