/** The phases of a request that has ended, ms. */
export interface Latency {
  /** From its start to its slot; all of it if it never got one. */
  readonly queueWaitMs: number;
  /** In calls to workers; 0 without one. */
  readonly grpcTimeMs: number;
  readonly totalTimeMs: number;
}

interface Marks {
  readonly startMs: number;
  readonly expiresMs: number;
  dequeuedMs: number | null;
  grpcStartedMs: number | null;
}

/** How long entries stay. */
export interface LatencyTrackerOptions {
  /** Least time to live of an entry, ms. */
  readonly ttlMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/**
 * Measures requests in four marks: start, dequeued, grpc started, complete. Entries of requests that never complete are
 * removed by `cleanup` (docs/design/audio-scheduling.md#measured-times). Marks of unknown requests have no effect.
 */
export class LatencyTracker<Key> {
  readonly #options: LatencyTrackerOptions;
  readonly #marks = new Map<Key, Marks>();

  constructor(options: LatencyTrackerOptions) {
    this.#options = options;
  }

  /** Entries of requests that have not completed. */
  get size(): number {
    return this.#marks.size;
  }

  /** @param lifetimeMs how long the request may take at most, if that is longer than the usual time to live */
  start(key: Key, lifetimeMs = 0): void {
    const { ttlMs, now } = this.#options;
    const startMs = now();
    const expiresMs = startMs + Math.max(ttlMs, lifetimeMs);
    this.#marks.set(key, { startMs, expiresMs, dequeuedMs: null, grpcStartedMs: null });
  }

  /** It got its first slot. */
  dequeued(key: Key): void {
    const marks = this.#marks.get(key);
    if (marks !== undefined) marks.dequeuedMs ??= this.#options.now();
  }

  /** Its first call begins. */
  grpcStarted(key: Key): void {
    const marks = this.#marks.get(key);
    if (marks !== undefined) marks.grpcStartedMs ??= this.#options.now();
  }

  /** It has ended; null if it is not known. */
  complete(key: Key): Latency | null {
    const marks = this.#marks.get(key);
    if (marks === undefined) return null;
    this.#marks.delete(key);
    const nowMs = this.#options.now();
    const { startMs, dequeuedMs, grpcStartedMs } = marks;
    return {
      queueWaitMs: (dequeuedMs ?? nowMs) - startMs,
      grpcTimeMs: grpcStartedMs === null ? 0 : nowMs - grpcStartedMs,
      totalTimeMs: nowMs - startMs,
    };
  }

  /** Removes entries whose time is over. Returns how many. */
  cleanup(): number {
    const nowMs = this.#options.now();
    let removed = 0;
    for (const [key, { expiresMs }] of this.#marks) {
      if (nowMs < expiresMs) continue;
      this.#marks.delete(key);
      removed++;
    }
    return removed;
  }
}
