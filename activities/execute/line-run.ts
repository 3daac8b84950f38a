import type { StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { CancelReason } from './cancel-reason';

/** Settles the open lines of a chunk: by sending them, or by ending them unsent. */
export interface LineRun {
  /** Requests in flight now. */
  readonly inFlight: number;
  /** Lines settled by this attempt. */
  readonly answered: number;
  /** What the run waits for, for operators; null if it does not wait. */
  readonly waitsFor: string | null;
  /** Answers per second; null before the first one. */
  readonly ratePerSec: number | null;
  /** 95th percentile of answer times, ms; null before the first answer. */
  readonly p95Ms: number | null;
  /** When the first line in backoff is due, Unix ms; null if none is in backoff. */
  readonly nextDueMs: number | null;
  /** Set if the batch stopped. */
  readonly stopCause: StopCause | null;
  /** Runs until the attempt must exit. When it resolves, nothing is in flight. */
  run(): Promise<ExitReason>;
  /** The activity was cancelled. */
  onCancelled(reason: CancelReason): void;
}
