/** What one answer shows about the queue of its gateway. */
export interface QueueSample {
  /** Time that the request waited in the queue, ms. */
  readonly queueMs: number;
  /** Whether lines waited for a permit when the answer came. */
  readonly isLineWaiting: boolean;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: number;
}

/** A shorter time in the queue is none. */
const EMPTY_BELOW_MS = 1;
/** How long the queue must have been empty. */
const EMPTY_FOR_MS = 30_000;
/** Time between two reports. */
const QUIET_MS = 600_000;
/** Models that are followed at a time: clients choose their names. */
const MOST_MODELS = 1_000;

/**
 * Finds out that a gateway has nothing to dispatch although lines wait in the worker. Then capacity that becomes free
 * stays unused until the next line has arrived, so the worker should have more requests open
 * (docs/design/held-requests.md#empty-queues).
 */
export class EmptyQueueWatch {
  /** Since when every answer of a model has shown an empty queue. */
  readonly #emptySinceMs = new Map<string, number>();
  #reportedAtMs = -Infinity;

  /** Call it for each answer that names its time in the queue. True if this is to be reported now. */
  onAnswer(model: string, { queueMs, isLineWaiting, nowMs }: QueueSample): boolean {
    if (queueMs >= EMPTY_BELOW_MS || !isLineWaiting) {
      this.#emptySinceMs.delete(model);
      return false;
    }
    const sinceMs = this.#emptySinceMs.get(model);
    if (sinceMs === undefined) {
      if (this.#emptySinceMs.size < MOST_MODELS) this.#emptySinceMs.set(model, nowMs);
      return false;
    }
    if (nowMs - sinceMs < EMPTY_FOR_MS || nowMs - this.#reportedAtMs < QUIET_MS) return false;
    this.#reportedAtMs = nowMs;
    return true;
  }
}
