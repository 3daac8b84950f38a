/** A model with fewer lines than this has one lane. */
const ONE_LANE_BELOW_LINES = 128;
const LANES_OF_A_WORKER = 2;
/** Lanes beside two for each worker (docs/design/execution.md#lanes). */
export const SPARE_LANES = 4;
/** Lanes of a model if one worker runs all of its chunks. */
export const LANES_AT_ONE_WORKER = LANES_OF_A_WORKER + SPARE_LANES;

/** What decides the number of lanes. */
export interface LaneCountInput {
  /** Lines of the model in this batch. */
  readonly totalLines: number;
  /** Workers of the model's latest chunk results; empty before the first. */
  readonly recentWorkers: readonly string[];
  /** `concurrency.lanes_per_model`. */
  readonly lanesPerModel: number;
  /** {@link SPARE_LANES}, or fewer in a run of an older release. */
  readonly spareLanes: number;
}

/** Whether a model of so many lines may have several lanes. */
export const hasLanes = (totalLines: number): boolean => totalLines >= ONE_LANE_BELOW_LINES;

/**
 * How many chunks of one model should run at once: 1 below 128 lines, else 2 × (distinct workers seen, at least 1)
 * + `spareLanes`, at most `lanesPerModel` (docs/design/execution.md#lanes).
 */
export function laneCount(input: LaneCountInput): number {
  if (!hasLanes(input.totalLines)) return 1;
  const workers = Math.max(1, new Set(input.recentWorkers).size);
  return Math.max(1, Math.min(LANES_OF_A_WORKER * workers + input.spareLanes, input.lanesPerModel));
}
