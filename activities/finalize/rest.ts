import { inSlices, type Span } from '../../core/journal/coverage';
import { FRAME_KIND } from '../../core/journal/frame';
import { isPreferred } from '../../core/journal/merge';
import type { FrameRef, JournalStore, SealInfo } from '../../storage/journal/journal-store';
import { indexOfOffset, plannedOffsets, type PlanPart, type PlanPlace } from './plan-offsets';

/** Positions searched at once; it bounds the memory that their frames' references take. */
const SLICE_ENTRIES = 20_000;

/** What sealing the rest takes. */
export interface RestInput {
  readonly journal: JournalStore;
  readonly place: PlanPlace;
  /** A model and its positions outside all seals. */
  readonly part: PlanPart;
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
  const seals: SealInfo[] = [];
  for (const ranges of inSlices(part.ranges, SLICE_ENTRIES)) {
    const frames = await answersIn(input, ranges);
    if (frames.length > 0) seals.push(await journal.writeSeal(scope, 'rest', frames));
  }
  return seals;
}

/** The answer of each answered entry, in order of offset. */
async function answersIn(input: RestInput, ranges: readonly Span[]): Promise<FrameRef[]> {
  const { journal, place, part } = input;
  const scope = { batchId: place.batchId, safeModel: part.safe };
  const offsets = await plannedOffsets(place, [{ safe: part.safe, ranges }]);
  const answers = new Array<FrameRef | undefined>(offsets.length);
  const hull = { from: ranges[0]?.from ?? 0, to: ranges.at(-1)?.to ?? 0 };
  for await (const frame of journal.scan(scope, hull)) {
    input.check();
    if (frame.header.kind === FRAME_KIND.retry) continue;
    const index = indexOfOffset(offsets, frame.header.offset);
    if (index === -1) continue;
    const known = answers[index];
    if (known === undefined || isPreferred(claim(frame), claim(known))) answers[index] = frame;
  }
  return answers.filter((frame) => frame !== undefined);
}

function claim({ header, objectKey, position }: FrameRef) {
  return { kind: header.kind, objectKey, position };
}
