import type { Usage } from '../../core/batch/counts';

/** Receives events for metrics. It must not throw and must be fast, because it is called for every request. */
export interface ExecuteObserver {
  chunkStarted(): void;
  chunkEnded(): void;
  requestStarted(model: string): void;
  requestEnded(model: string, tookMs: number, ok: boolean): void;
  /** A line will be sent again. */
  requestRetried(model: string): void;
  /** Usage of a successful answer. */
  tokens(model: string, usage: Usage): void;
}
