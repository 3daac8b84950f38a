import type { Usage } from '../../core/batch/counts';

/** Told what happens to requests, for metrics; must not throw. */
export interface ExecuteObserver {
  chunkStarted(): void;
  chunkEnded(): void;
  requestStarted(model: string): void;
  /** `usage` is null where the try brought no successful answer. */
  requestEnded(request: { model: string; tookMs: number; usage: Usage | null }): void;
}
