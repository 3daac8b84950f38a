import { CancellationScope, log, sleep } from '@temporalio/workflow';
import type { ChunkInFlight, OverdueQueue } from './chunk-in-flight';

/** A model whose chunks are watched. */
export interface WatchedModel {
  readonly plan: { readonly model: string; readonly queue: string };
  /** Oldest first. */
  readonly inFlight: ReadonlySet<ChunkInFlight>;
}

/**
 * Reports chunks that no worker takes from their queue, in histories whose chunks wait there without a
 * limit. A workflow cannot see whether an activity has started. A chunk that has been in flight for longer
 * than an attempt may last, and for longer than `warningMs`, has most likely not.
 */
export class QueueWatch {
  readonly #models: readonly WatchedModel[];
  readonly #warningMs: number;
  readonly #onChange: () => void;
  readonly #reported = new Set<ChunkInFlight>();
  readonly #scope = new CancellationScope();

  constructor(
    models: readonly WatchedModel[],
    options: { readonly warningMs: number; readonly onChange: () => void },
  ) {
    this.#models = models;
    this.#warningMs = options.warningMs;
    this.#onChange = options.onChange;
  }

  /** One entry for each model with a reported chunk that is still in flight. */
  get overdue(): OverdueQueue[] {
    return this.#models.flatMap(({ plan: { model, queue }, inFlight }) => {
      const oldest = [...inFlight].find((chunk) => this.#reported.has(chunk));
      return oldest === undefined ? [] : [{ model, queue, sinceMs: oldest.sinceMs }];
    });
  }

  /** Call it when the first chunks are in flight. */
  start(): void {
    this.#scope
      .run(async () => {
        for (;;) {
          await sleep(this.#untilNextMs());
          this.#report();
        }
      })
      .catch(() => undefined);
  }

  stop(): void {
    this.#scope.cancel();
  }

  /** Time to the next check, ms. Chunks that are scheduled meanwhile cannot be due before it. */
  #untilNextMs(): number {
    const due = this.#models.flatMap(({ inFlight }) =>
      [...inFlight].filter((chunk) => !this.#reported.has(chunk)).map((one) => this.#dueMs(one)),
    );
    return Math.max(1, Math.min(Date.now() + this.#warningMs, ...due) - Date.now());
  }

  #dueMs({ sinceMs, attemptMs }: ChunkInFlight): number {
    return sinceMs + Math.max(this.#warningMs, attemptMs);
  }

  #report(): void {
    const before = this.#reported.size;
    for (const { plan, inFlight } of this.#models) {
      for (const chunk of inFlight) {
        if (this.#reported.has(chunk) || Date.now() < this.#dueMs(chunk)) continue;
        this.#reported.add(chunk);
        log.warn('no worker takes a chunk', { model: plan.model, queue: plan.queue });
      }
    }
    if (this.#reported.size > before) this.#onChange();
  }
}
