/** How a process of ours starts. */
export interface StartOptions {
  /** Gives up a start that waits for a dependency; it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Longest wait for everything that the process depends on, ms. Default: 5 minutes. */
  readonly startWaitMs?: number;
}

/** A running process of ours (API, worker, simulator), as its starter sees it. */
export interface RunningProcess {
  /** Address it serves on, e.g. `http://127.0.0.1:8000`. */
  readonly url: string;

  /** Drains and stops. Idempotent: every call resolves when the first one is done. */
  close(): Promise<void>;

  /**
   * Resolves when the process ends by itself, and rejects with the error if one ended it. Absent if the
   * process ends only on request.
   */
  readonly finished?: Promise<void>;
}
