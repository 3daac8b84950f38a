import type { AudioNeed } from '../../core/audio/audio-need';
import type { PooledJob } from './pooled-job';

/** Requests that wait for a model which no ready worker serves: the pool has workers, but not theirs. */
export class UnservedModels {
  readonly #ttlMs: number;
  readonly #sinceMs = new Map<PooledJob, number>();

  /** @param ttlMs how long a request waits for a worker of its model, ms */
  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  /** The waiting jobs whose time is over. To be called often, with all that wait. */
  due(
    waiting: readonly PooledJob[],
    isServed: (need: AudioNeed) => boolean,
    nowMs: number,
  ): readonly PooledJob[] {
    const unserved = waiting.filter(({ job }) => !isServed(job.need));
    const known = new Set(unserved);
    for (const entry of this.#sinceMs.keys()) if (!known.has(entry)) this.#sinceMs.delete(entry);
    return unserved.filter((entry) => {
      const sinceMs = this.#sinceMs.get(entry) ?? nowMs;
      this.#sinceMs.set(entry, sinceMs);
      return nowMs - sinceMs >= this.#ttlMs;
    });
  }
}
