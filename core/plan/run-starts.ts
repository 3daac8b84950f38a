import { RUN_MARK } from './runs';

/** The lines of a chunk, by index. */
export interface MarkedLines {
  /** One of {@link RUN_MARK} for each line. */
  readonly marks: Uint8Array;
  /** Plan position of the first line. */
  readonly from: number;
  /** Hash of a line's system prompt, 0 for none. */
  hashOf(index: number): number;
}

/**
 * For each line of a chunk, the plan position where its run begins, or -1 if it shares no prefix. It names a
 * group of lines whose prefix is worth keeping in a cache (docs/design/execution.md#requests-to-a-gateway).
 *
 * If the first line only continues a run, that run counts from the first line: its beginning is in another
 * chunk. Whether its lines share a prefix is then known only if they have a system prompt.
 */
export function runStarts({ marks, from, hashOf }: MarkedLines): Int32Array {
  const starts = new Int32Array(marks.length);
  let start = -1;
  for (let index = 0; index < marks.length; index++) {
    const mark = marks[index];
    const isContinued = index === 0 && mark === RUN_MARK.none && hashOf(0) !== 0;
    if (mark === RUN_MARK.shared || isContinued) start = from + index;
    else if (mark === RUN_MARK.single) start = -1;
    starts[index] = start;
  }
  return starts;
}
