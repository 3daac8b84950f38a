/** A chunk may wait in its queue for up to this many times as long when others waited in vain. */
const MAX_DOUBLINGS = 3;

/**
 * How long a model's chunks may wait in their queue before they are taken back and routed anew. A queue
 * may just be long, so each chunk that came back makes the next one wait longer.
 */
export class QueueTimeout {
  readonly #firstMs: number | undefined;
  #timeouts = 0;
  /** Since when nobody takes chunks from the queue, Unix ms; null while somebody does. */
  overdueSinceMs: number | null = null;

  /** @param firstMs undefined in histories whose chunks wait for ever */
  constructor(firstMs: number | undefined) {
    this.#firstMs = firstMs;
  }

  get scheduleToStartMs(): number | undefined {
    if (this.#firstMs === undefined) return undefined;
    return this.#firstMs * 2 ** Math.min(this.#timeouts, MAX_DOUBLINGS);
  }

  /** A chunk that was put into its queue at `sinceMs` came back from there. */
  expired(sinceMs: number): void {
    this.overdueSinceMs ??= sinceMs;
    this.#timeouts++;
  }

  /** A worker has taken a chunk. */
  taken(): void {
    this.overdueSinceMs = null;
    this.#timeouts = 0;
  }
}
