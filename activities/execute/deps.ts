import type { AcquireRequest, Dispatcher, ModelLimit, Permit } from '../../inference/dispatcher';
import type { Registry } from '../../inference/registry';
import type { MemoryBudget } from '../../inference/memory-budget';
import type { Config } from '../../platform/config-schema';
import type { Logger } from '../../platform/logger';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';
import type { ProgressReporter } from '../../storage/postgres/progress';
import type { ModelRoute } from '../contract';
import type { ExecuteObserver } from './observer';

/** What a chunk needs of its process; one instance serves all chunks. */
export interface ExecuteDeps {
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly registry: Registry;
  /** What all workers together can send. */
  readonly routes: { routeOf(model: string): ModelRoute | null };
  readonly dispatcher: ExecuteDispatcher;
  readonly memory: MemoryBudget;
  readonly progress: ProgressReporter;
  /** Headers of the create call. @throws what passes, where they cannot be had now */
  passThrough(batchId: string): Promise<Readonly<Record<string, string>>>;
  readonly observer: ExecuteObserver;
  readonly logger: Logger;
  readonly config: Pick<Config, 'batch' | 'concurrency' | 'worker'>;
  /** Name of this worker, as results and progress rows carry it. */
  readonly worker: string;
  /** Aborted when the process is told to stop: nothing new is sent, what runs is finished. */
  readonly drain: AbortSignal;
}

/** The dispatcher with its short way: a permit at once or null; and why there is none. */
export interface ExecuteDispatcher extends Dispatcher {
  tryAcquire(request: AcquireRequest): Permit | null;
  limitOf(model: string): ModelLimit;
}
