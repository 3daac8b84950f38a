import type { Usage } from '../../core/batch/counts';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { RetryCause } from '../../core/dispatch/outcome';

/** Receives events for metrics. It must not throw and must be fast, because it is called for every request. */
export interface ExecuteObserver {
  chunkEnded(attempt: EndedAttempt): void;
  requestStarted(model: string, batchId: string): void;
  /**
   * A try has ended, with or without an answer. `servedMs` is its time without that in the queue of a
   * gateway; null if no model server has seen the request.
   */
  requestEnded(model: string, servedMs: number | null): void;
  /** A gateway reported how long a request waited in its queue. */
  requestQueued(model: string, queueMs: number): void;
  /** A gateway gave a request up unserved. `code` has a bounded number of values. */
  requestDropped(model: string, code: string): void;
  /** A try failed, and its line will be sent again unless the batch ends first. */
  requestRetried(model: string, cause: RetryCause): void;
  /** A line got its final result; `ok` if it goes to the output file. */
  requestSettled(model: string, ok: boolean): void;
  /** A try has ended that cost its tenant so many tokens, as far as that is known. */
  served(tenant: string, tokens: number): void;
  /** Usage of a successful answer. */
  tokens(model: string, usage: Usage): void;
}

/** One attempt at a chunk that has returned. */
export interface EndedAttempt {
  readonly batchId: string;
  /** `error`: the attempt failed. */
  readonly exit: ExitReason | 'error';
  readonly tookMs: number;
}
