import type {
  AcquireRequest,
  Dispatcher,
  ModelLimit,
  Permit,
  ReleaseHold,
} from '../../inference/dispatcher';
import type { Registry } from '../../inference/registry';
import type { MemoryBudget } from '../../inference/memory-budget';
import type { Config } from '../../platform/config-schema';
import type { Logger } from '../../platform/logger';
import type { Tracing } from '../../platform/tracing/tracing';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';
import type { ProgressReporter } from '../../storage/postgres/progress';
import type { ModelRoute } from '../contract';
import type { ExecuteObserver } from './observer';

/** What a chunk needs of its process. One instance serves all chunks. */
export interface ExecuteDeps {
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly registry: Registry;
  /** What all live workers together can send. */
  readonly routes: { routeOf(model: string): ModelRoute | null };
  readonly dispatcher: ExecuteDispatcher;
  readonly memory: MemoryBudget;
  readonly progress: ProgressReporter;
  /** Headers of the create call. @throws a retryable error if they cannot be read now */
  passThrough(batchId: string): Promise<Readonly<Record<string, string>>>;
  readonly observer: ExecuteObserver;
  /** Records requests as spans; null or undefined for none. */
  readonly tracing?: Pick<Tracing, 'requests'> | null;
  readonly logger: Logger;
  readonly config: Pick<Config, 'batch' | 'concurrency' | 'limits' | 'worker'>;
  /** Identity of this worker, for results and progress rows. */
  readonly worker: string;
  /** Aborts when the process shuts down: nothing new is sent, requests in flight are finished. */
  readonly drain: AbortSignal;
}

/** The dispatcher, with a synchronous way to take a permit, and with the limits of a model. */
export interface ExecuteDispatcher extends Dispatcher, ReleaseHold {
  tryAcquire(request: AcquireRequest): Permit | null;
  limitOf(model: string): ModelLimit;
  /** The setting that makes requests of the model wait; null if none does. */
  scarcePermitOf(model: string): string | null;
}
