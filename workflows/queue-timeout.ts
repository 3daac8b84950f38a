/** The timeout doubles at most this often. */
const MAX_DOUBLINGS = 3;

/**
 * How long a model's chunks may wait in their task queue before they are taken back and routed anew. The
 * queue may just be long, so each chunk that came back doubles the time for the next one
 * (docs/design/execution.md#task-queues).
 */
export class QueueTimeout {
  readonly #firstMs: number | undefined;
  #expirations = 0;
  /** Since when no worker takes chunks from the queue, Unix ms; null while one does. */
  overdueSinceMs: number | null = null;

  /** @param firstMs undefined in histories whose chunks wait without a limit */
  constructor(firstMs: number | undefined) {
    this.#firstMs = firstMs;
  }

  /** Schedule-to-start timeout of the next chunk, ms; undefined for none. */
  get scheduleToStartMs(): number | undefined {
    if (this.#firstMs === undefined) return undefined;
    return this.#firstMs * 2 ** Math.min(this.#expirations, MAX_DOUBLINGS);
  }

  /** Call it when a chunk that was scheduled at `scheduledMs` came back untaken. */
  onExpired(scheduledMs: number): void {
    this.overdueSinceMs ??= scheduledMs;
    this.#expirations++;
  }

  /** Call it when a worker has taken a chunk. */
  onTaken(): void {
    this.overdueSinceMs = null;
    this.#expirations = 0;
  }
}
