/** How long to pause between attempts, and when to give up. Durations in ms. */
export interface RetryPolicy {
  readonly firstPauseMs: number;
  /** The pause doubles with each failure up to this. */
  readonly maxPauseMs: number;
  /** A failure after this time is final. */
  readonly limitMs: number;
}

/** Every policy of {@link retry}. Requests to model servers have their own rules (core/dispatch/retry.ts). */
export const RETRY_POLICIES = {
  /**
   * Steps of a chunk that need the object store or PostgreSQL. An outage costs time but no attempt of the
   * chunk. The caller's signal ends the retries.
   */
  chunkStep: { firstPauseMs: 100, maxPauseMs: 5_000, limitMs: Infinity },
  /** What a process depends on may start after it (docs/design/processes.md#waiting-at-the-start). */
  processStart: { firstPauseMs: 500, maxPauseMs: 2_000, limitMs: 300_000 },
  /** A Temporal server that has just started accepts connections before it can serve every call. */
  temporalStart: { firstPauseMs: 500, maxPauseMs: 500, limitMs: 30_000 },
  /** Uploads and downloads of the command line, which limits the number of attempts itself. */
  transfer: { firstPauseMs: 1_000, maxPauseMs: 8_000, limitMs: Infinity },
} as const satisfies Readonly<Record<string, RetryPolicy>>;

/** Policy, clock and callbacks of {@link retry}. */
export interface RetryOptions {
  readonly policy: RetryPolicy;
  /** A clock that never steps back, ms. */
  nowMs(): number;
  sleep(ms: number): Promise<void>;
  /** Whether another attempt could succeed. */
  isRetryable(error: unknown): boolean;
  /** Called before each pause. */
  onRetry?(error: unknown, pauseMs: number): void;
}

/** Repeats `work` until it succeeds. @throws the last error, if it is not retryable or time is up */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { policy, nowMs, sleep } = options;
  const endMs = nowMs() + policy.limitMs;
  for (let pauseMs = policy.firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, policy.maxPauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!options.isRetryable(error) || nowMs() >= endMs) throw error;
      options.onRetry?.(error, pauseMs);
      await sleep(pauseMs);
    }
  }
}
