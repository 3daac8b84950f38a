/** What decides how long a chunk may send. */
export interface TimeSliceInput {
  /** Time since the batch began to execute, ms. */
  readonly batchAgeMs: number;
  /** 95th percentile of the model's answer times, ms; 0 while unknown. */
  readonly p95Ms: number;
}

/**
 * Time slice of a chunk, ms: a tenth of the batch's age between 15 s and 300 s, but at least 4 × p95
 * (docs/design/execution.md#time-slices).
 */
export function timeSliceMs({ batchAgeMs, p95Ms }: TimeSliceInput): number {
  const share = Math.min(Math.max(batchAgeMs / 10, 15_000), 300_000);
  return Math.round(Math.max(share, 4 * p95Ms));
}

/**
 * First time slice of lane `lane` of `lanes`, counted from 0, ms. The first slices are staggered, so that
 * the chunks of a model do not all end at the same moment.
 */
export function firstTimeSliceMs(sliceMs: number, lane: number, lanes: number): number {
  return Math.round((sliceMs * (lane + 1)) / Math.max(lanes, 1));
}
