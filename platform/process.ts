/** A started process of ours (API, worker, simulator): what whoever started it may do with it. */
export interface RunningProcess {
  /** Address it serves on, e.g. `http://127.0.0.1:8000`. */
  readonly url: string;

  /** Drains and stops; idempotent: every call answers when the first one is done. */
  close(): Promise<void>;

  /**
   * Settles when the process ends by itself: rejects with what went wrong. Left out by a process
   * that only ends when it is told to.
   */
  readonly finished?: Promise<void>;
}
