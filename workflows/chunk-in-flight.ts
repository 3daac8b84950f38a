/** A chunk that was scheduled and has not returned. */
export interface ChunkInFlight {
  /** When it was scheduled, Unix ms. */
  readonly sinceMs: number;
  /** How long an attempt could take if it began at once, ms. */
  readonly attemptMs: number;
}

/** A task queue from which no worker takes a model's chunks. */
export interface OverdueQueue {
  readonly model: string;
  readonly queue: string;
  /** When the oldest waiting chunk was scheduled, Unix ms. */
  readonly sinceMs: number;
}
