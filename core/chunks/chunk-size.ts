/**
 * Largest number of plan positions in a chunk, and so in a segment or seal with a range. Part of the
 * journal's format: readers rely on it (docs/design/journal.md#segments).
 */
export const MAX_CHUNK_ENTRIES = 10_000;
/** Smallest chunk while the model's rate is unknown. */
const FLOOR_WITHOUT_RATE = 64;

/** Rounds that the rest of a model is cut into. */
const ROUNDS = 2;
/** The same for the first chunk of a lane. */
export const FIRST_ROUNDS = 1;

/** What decides the size of a chunk. */
export interface ChunkSizeInput {
  /** Plan entries of the model that no chunk has taken yet. */
  readonly remaining: number;
  /** Lanes of the model now. */
  readonly lanes: number;
  /** Answers per second of the model's latest chunk with answers; null before the first answer. */
  readonly lastRatePerSec: number | null;
  /** Into how many rounds of all lanes the rest is cut; {@link ROUNDS} by default. */
  readonly rounds?: number;
}

/**
 * Entries of the next chunk, by guided self-scheduling: clamp(remaining / (rounds × lanes), floor, 10,000),
 * and never more than remain. Chunks shrink towards the end, so that all lanes finish together
 * (docs/design/execution.md#chunk-size).
 */
export function chunkSize(input: ChunkSizeInput): number {
  const { remaining, lanes, lastRatePerSec, rounds = ROUNDS } = input;
  const floor =
    lastRatePerSec === null ? FLOOR_WITHOUT_RATE : clamp(Math.ceil(2 * lastRatePerSec), 8, 2_000);
  const share = Math.ceil(remaining / (rounds * Math.max(lanes, 1)));
  return Math.max(0, Math.min(remaining, clamp(share, floor, MAX_CHUNK_ENTRIES)));
}

/**
 * Entries of the first chunk of lane `lane` of `lanes`, counted from 0, given the size of a chunk. Lanes share the permits
 * of their model, so that chunks of equal size would end at the same moment, and no lane had anything to send then.
 */
export function firstChunkSize(size: number, lane: number, lanes: number): number {
  const part = Math.ceil((size * (lane + 1)) / Math.max(lanes, 1));
  return Math.min(size, Math.max(part, FLOOR_WITHOUT_RATE));
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
