import { inSlices } from '../../core/journal/coverage';
import type { Range } from '../../core/range';
import { FRAME_KIND } from '../../core/journal/frame';
import type { JournalObject, JournalStore, SealInfo } from '../../storage/journal/journal-store';
import { AnswerTable } from './answer-table';
import { plannedOffsets, type PlanPart, type PlanPlace } from './plan-offsets';

/** Positions searched at once; it bounds the memory that their answers' places take. */
const SLICE_ENTRIES = 20_000;

/** What sealing the rest takes. */
export interface RestInput {
  readonly journal: JournalStore;
  readonly place: PlanPlace;
  /** A model and its positions outside all seals. */
  readonly part: PlanPart;
  /** Those that leave these positions open: they need not be read. */
  readonly seals: readonly Pick<SealInfo, 'key'>[];
  /** Throws when the activity is cancelled. */
  check(): void;
}

/**
 * Puts the answered entries outside all seals into `rest` objects (execution §2): one for each 20,000
 * positions that have any answer, so mostly one. @throws object_store_failed, plan_unreadable
 */
export async function sealRest(input: RestInput): Promise<SealInfo[]> {
  const { journal, place, part } = input;
  const scope = { batchId: place.batchId, safeModel: part.safe };
  const rest: SealInfo[] = [];
  const known = new Set(input.seals.map(({ key }) => key));
  for (const ranges of inSlices(part.ranges, SLICE_ENTRIES)) {
    const frames = await answersIn(input, ranges, known);
    if (frames.length === 0) continue;
    const seal = await journal.writeSeal(scope, 'rest', frames);
    known.add(seal.key);
    rest.push(seal);
  }
  return rest;
}

/** The answer of each answered entry, in order of offset. */
async function answersIn(
  input: RestInput,
  ranges: readonly Range[],
  known: ReadonlySet<string>,
): Promise<AnswerTable> {
  const { journal, place, part } = input;
  const scope = { batchId: place.batchId, safeModel: part.safe };
  const offsets = await plannedOffsets(place, [{ safe: part.safe, ranges }]);
  const answers = new AnswerTable(offsets);
  const hull = { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 };
  const isWanted = ({ key, range }: JournalObject) =>
    !known.has(key) && (range === null || ranges.some((open) => overlap(open, range)));
  for await (const frame of journal.scan(scope, hull, isWanted)) {
    input.check();
    if (frame.header.kind !== FRAME_KIND.retry) answers.learn(frame);
  }
  return answers;
}

function overlap(a: Range, b: Range): boolean {
  return a.from < b.to && b.from < a.to;
}
