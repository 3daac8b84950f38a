import type { PooledJob } from './pooled-job';

/** A job whose call must be repeated. */
export interface Repeat {
  readonly entry: PooledJob;
  /** Not on the worker of its last call before this time, ms. */
  readonly sameWorkerAtMs: number;
  /** Given up at this time, ms. */
  readonly expiresMs: number;
  /** Since when no ready worker can serve it, ms; null while one can. */
  unservedSinceMs: number | null;
}

/**
 * Jobs that wait for another slot after a call that failed, in order. They keep their place in flight and go before the
 * queue (docs/design/audio-scheduling.md#repeated-calls).
 */
export class Repeats {
  readonly #waiting = new Map<PooledJob, Repeat>();

  get size(): number {
    return this.#waiting.size;
  }

  add(repeat: Repeat): void {
    this.#waiting.set(repeat.entry, repeat);
  }

  /** Returns false if it does not wait. */
  remove(entry: PooledJob): boolean {
    return this.#waiting.delete(entry);
  }

  /** Whether a job of a model waits, so that the queue must leave the next slot to it. */
  waitsFor(model: string): boolean {
    for (const { job } of this.#waiting.keys()) if (job.need.model === model) return true;
    return false;
  }

  /** A copy, because what is done with one changes the list. */
  all(): readonly Repeat[] {
    return [...this.#waiting.values()];
  }
}
