import type { ChunkInFlight, OverdueQueue } from './chunk-in-flight';
import type { ResumedModel } from './contract';
import type { ModelProgress } from './model-progress';

/** One model of a batch while it executes: through its gateway, or through a provider's batch API. */
export interface ModelRun {
  readonly plan: ResumedModel;
  readonly progress: ModelProgress;
  /** No worker could send the model when the file was read: it is looked up again after all others. */
  isUndecided: boolean;
  /** Where the model's requests go now, for operators. */
  readonly queue: string;
  /** Since when no worker can send the model's requests, Unix ms; null while one can. */
  readonly unroutedSinceMs: number | null;
  /** Set while no worker takes the model's chunks from their queue. */
  readonly overdue: OverdueQueue | null;
  /** Lanes or jobs that run. */
  readonly running: number;
  /** Chunks that have not returned, oldest first. */
  readonly inFlight: ReadonlySet<ChunkInFlight>;
  /** Runs until every range is answered, a stop is requested, or the run hands over. Never rejects. */
  run(): Promise<void>;
  /** After a stop: collects what can still be had. Never rejects. */
  harvest(): Promise<void>;
  /** What the next run needs to go on. */
  toResume(): ResumedModel;
}
