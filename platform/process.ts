/** A running process of ours (API, worker, simulator), as its starter sees it. */
export interface RunningProcess {
  /** Address it serves on, e.g. `http://127.0.0.1:8000`. */
  readonly url: string;

  /** Drains and stops. Idempotent: every call resolves when the first one is done. */
  close(): Promise<void>;

  /**
   * Settles when the process ends by itself; rejects with the error that ended it. Absent if the
   * process only ends on request.
   */
  readonly finished?: Promise<void>;
}
