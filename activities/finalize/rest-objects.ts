import { inSlices } from '../../core/journal/coverage';
import { FRAME_KIND } from '../../core/journal/frame';
import type { Range } from '../../core/range';
import type { JournalObject, JournalStore, SealInfo } from '../../storage/journal/journal-store';
import { AnswerTable } from './answer-table';
import { type BatchPlan, plannedOffsets, type PlanRanges } from './plan-offsets';

/** Positions that are searched in one pass. Limits the memory of {@link AnswerTable}. */
const SLICE_ENTRIES = 20_000;

/** What {@link writeRestObjects} needs. */
export interface RestInput {
  readonly journal: Pick<JournalStore, 'scan' | 'writeSeal'>;
  readonly plan: BatchPlan;
  /** Throws when the activity is cancelled. */
  check(): void;
}

/**
 * Writes the answers of one model at uncovered positions to rest objects: one object for each 20,000
 * positions that have any answer (docs/design/journal.md#rest-objects). `seals` do not cover these positions
 * and are not read. @throws object_store_failed, plan_unreadable
 */
export async function writeRestObjects(
  input: RestInput,
  { safeModel, ranges }: PlanRanges,
  seals: readonly Pick<SealInfo, 'key'>[],
): Promise<SealInfo[]> {
  const scope = { batchId: input.plan.batchId, safeModel };
  const written: SealInfo[] = [];
  const known = new Set(seals.map(({ key }) => key));
  for (const slice of inSlices(ranges, SLICE_ENTRIES)) {
    const answers = await answersAt(input, { safeModel, ranges: slice }, known);
    if (answers.length === 0) continue;
    const seal = await input.journal.writeSeal(scope, 'rest', answers);
    known.add(seal.key);
    written.push(seal);
  }
  return written;
}

/** The best answer at each of these positions, in order of offset. */
async function answersAt(
  { journal, plan, check }: RestInput,
  { safeModel, ranges }: PlanRanges,
  known: ReadonlySet<string>,
): Promise<AnswerTable> {
  const offsets = await plannedOffsets(plan, [{ safeModel, ranges }]);
  const answers = new AnswerTable(offsets);
  const hull = { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 };
  const isWanted = ({ key, range }: JournalObject) =>
    !known.has(key) && (range === null || ranges.some((open) => overlap(open, range)));
  for await (const frame of journal.scan({ batchId: plan.batchId, safeModel }, hull, isWanted)) {
    check();
    if (frame.header.kind !== FRAME_KIND.retry) answers.offer(frame);
  }
  return answers;
}

function overlap(a: Range, b: Range): boolean {
  return a.from < b.to && b.from < a.to;
}
