import type { Usage } from '../../core/batch/counts';

/** Told what happens to requests, for metrics; must not throw. */
export interface ExecuteObserver {
  chunkStarted(): void;
  chunkEnded(): void;
  requestStarted(model: string): void;
  requestEnded(request: { model: string; tookMs: number; ok: boolean; usage: Usage | null }): void;
}
