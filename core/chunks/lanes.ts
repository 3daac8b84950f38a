/** A model with fewer lines than this has one lane. */
const ONE_LANE_BELOW_LINES = 128;
const FIRST_LANES = 4;

/** What decides the number of lanes. */
export interface LaneCountInput {
  /** Lines of the model in this batch. */
  readonly totalLines: number;
  /** Workers of the model's latest chunk results; empty before the first. */
  readonly recentWorkers: readonly string[];
  /** `concurrency.lanes_per_model`. */
  readonly lanesPerModel: number;
}

/**
 * How many chunks of one model should run at once: 1 below 128 lines, else 4, then 2 × (distinct workers
 * seen) + 2, at most `lanesPerModel` (docs/design/execution.md#lanes).
 */
export function laneCount({ totalLines, recentWorkers, lanesPerModel }: LaneCountInput): number {
  if (totalLines < ONE_LANE_BELOW_LINES) return 1;
  const workers = new Set(recentWorkers).size;
  const wanted = workers === 0 ? FIRST_LANES : 2 * workers + 2;
  return Math.max(1, Math.min(wanted, lanesPerModel));
}
