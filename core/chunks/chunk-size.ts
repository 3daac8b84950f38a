/**
 * Most plan positions in one chunk, and so in one segment or seal with a range. A constant of the
 * journal's format: readers may rely on it (docs/design/journal.md#segments).
 */
export const MAX_CHUNK_ENTRIES = 10_000;
const UNKNOWN_RATE_FLOOR = 64;

/** What decides the size of a chunk. */
export interface ChunkSizeInput {
  /** Plan entries of the model that no chunk has taken yet. */
  readonly remaining: number;
  /** Lanes of the model now. */
  readonly lanes: number;
  /** Answers a second of the lane's last chunk, or null where none has returned. */
  readonly lastRatePerSec: number | null;
}

/**
 * Entries of the next chunk, guided self-scheduling (execution §3 "Cutting"):
 * clamp(remaining / (2 × lanes), floor, 10,000), and never more than remain.
 */
export function chunkSize({ remaining, lanes, lastRatePerSec }: ChunkSizeInput): number {
  const floor =
    lastRatePerSec === null ? UNKNOWN_RATE_FLOOR : clamp(Math.ceil(2 * lastRatePerSec), 8, 2_000);
  const share = Math.ceil(remaining / (2 * Math.max(lanes, 1)));
  return Math.max(0, Math.min(remaining, clamp(share, floor, MAX_CHUNK_ENTRIES)));
}

/** What decides how long a chunk may run. */
export interface TimeSliceInput {
  /** Time since the batch began to execute, ms. */
  readonly batchAgeMs: number;
  /** 95th percentile of the model's answer times, ms; 0 while unknown. */
  readonly p95Ms: number;
}

/** Time box of a chunk, ms: clamp(age / 10, 15 s, 300 s), never under 4 × p95 (execution §3). */
export function timeSliceMs({ batchAgeMs, p95Ms }: TimeSliceInput): number {
  return Math.round(Math.max(clamp(batchAgeMs / 10, 15_000, 300_000), 4 * p95Ms));
}

/** First box of lane `lane` of `lanes`, counted from 0, ms: so that lanes do not all drain together. */
export function firstTimeSliceMs(box: number, lane: number, lanes: number): number {
  return Math.round((box * (lane + 1)) / Math.max(lanes, 1));
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
