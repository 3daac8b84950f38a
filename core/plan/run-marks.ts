import { RUN_MARK } from './runs';

/** A line begins a run if it shares more than this times as much with the next line as with the leader before it. */
const WORTH_A_LEADER = 1.25;

/** Neighbours of a plan, by place. */
export interface Neighbours {
  readonly from: number;
  readonly to: number;
  /** What a place shares with the place before, in any unit; it is asked about places above `from` only. */
  sharedWithPrevious(place: number): number;
}

/**
 * Marks where runs begin in `[from, to)`, whose lines are in depth-first order
 * (docs/design/batch-path.md#order-of-sending).
 *
 * A line that shares something with the leader of the run before it joins that run, unless it shares clearly more
 * with the next line: prompts about one document often share a few bytes of their questions too. If each such pair
 * had a leader of its own, they would all compute the document at the same time.
 */
export function markRuns(marks: Uint8Array, { from, to, sharedWithPrevious }: Neighbours): void {
  let mark: number = RUN_MARK.none;
  let withLeader = 0;
  for (let place = from; place < to; place++) {
    if (place > from) withLeader = Math.min(withLeader, sharedWithPrevious(place));
    const withNext = place + 1 < to ? sharedWithPrevious(place + 1) : 0;
    const goesOn =
      withLeader > 0
        ? withNext <= WORTH_A_LEADER * withLeader
        : withNext === 0 && mark === RUN_MARK.single;
    if (goesOn) continue;
    mark = withNext > 0 ? RUN_MARK.shared : RUN_MARK.single;
    marks[place] = mark;
    withLeader = mark === RUN_MARK.shared ? Infinity : 0;
  }
}
