import { CancellationScope, log, sleep } from '@temporalio/workflow';
import type { ChunkInFlight, ModelLanes } from './model-lanes';

/** A queue of which nobody takes a chunk. */
export interface OverdueQueue {
  readonly model: string;
  readonly queue: string;
  /** When the chunk was put there, Unix ms. */
  readonly sinceMs: number;
}

/**
 * Says which chunks nobody takes from their queue (execution §3 "Queues"): a timer, not a timeout, for
 * they wait as long as it takes. Whether a chunk has begun a workflow cannot see; one that has been out
 * for longer than an attempt may last and for longer than `warningMs` has most likely not.
 */
export class QueueWatch {
  readonly #models: readonly ModelLanes[];
  readonly #warningMs: number;
  readonly #onChange: () => void;
  readonly #told = new Set<ChunkInFlight>();
  readonly #scope = new CancellationScope();

  constructor(
    models: readonly ModelLanes[],
    options: { readonly warningMs: number; readonly onChange: () => void },
  ) {
    this.#models = models;
    this.#warningMs = options.warningMs;
    this.#onChange = options.onChange;
  }

  /** One for each model that has chunks which were told. */
  get overdue(): OverdueQueue[] {
    return this.#models.flatMap(({ plan, out }) => {
      const oldest = [...out].find((chunk) => this.#told.has(chunk));
      return oldest === undefined
        ? []
        : [{ model: plan.model, queue: plan.queue, sinceMs: oldest.sinceMs }];
    });
  }

  /** To be called when the first chunks are out. */
  start(): void {
    this.#scope
      .run(async () => {
        for (;;) {
          await sleep(this.#untilNextMs());
          this.#look();
        }
      })
      .catch(() => undefined);
  }

  stop(): void {
    this.#scope.cancel();
  }

  /** Chunks that go out later are due later than this. */
  #untilNextMs(): number {
    const due = this.#models.flatMap(({ out }) =>
      [...out].filter((chunk) => !this.#told.has(chunk)).map((chunk) => this.#dueMs(chunk)),
    );
    return Math.max(1, Math.min(Date.now() + this.#warningMs, ...due) - Date.now());
  }

  #dueMs({ sinceMs, attemptMs }: ChunkInFlight): number {
    return sinceMs + Math.max(this.#warningMs, attemptMs);
  }

  #look(): void {
    const before = this.#told.size;
    for (const { plan, out } of this.#models) {
      for (const chunk of out) {
        if (this.#told.has(chunk) || Date.now() < this.#dueMs(chunk)) continue;
        this.#told.add(chunk);
        log.warn('nobody takes a chunk', { model: plan.model, queue: plan.queue });
      }
    }
    if (this.#told.size > before) this.#onChange();
  }
}
