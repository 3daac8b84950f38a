import type { Usage } from '../../core/batch/counts';

/** Told what happens to requests, for metrics; must not throw. Called once or more per request: plain values. */
export interface ExecuteObserver {
  chunkStarted(): void;
  chunkEnded(): void;
  requestStarted(model: string): void;
  requestEnded(model: string, tookMs: number, ok: boolean): void;
  /** A line will be sent again; its last try had no answer, or one that is tried again. */
  requestRetried(model: string): void;
  /** Usage of a successful answer. */
  tokens(model: string, usage: Usage): void;
}
