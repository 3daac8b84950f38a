import type { QueuedRequest } from '../queue/queued-request';

/** How long a higher band must be shut out before sheddable requests are aborted, ms. */
const PATIENCE_MS = 500;
const MAX_PER_DECISION = 2;
/** A request, by its id, is aborted at most so often: it must end some day. */
const MAX_PER_ID = 3;
/** Ids whose aborts are remembered. */
const REMEMBERED_IDS = 10_000;

/**
 * Decides which sheddable requests in flight are aborted for requests of higher bands
 * (docs/design/flow-control.md#reclaim). It takes the newest, because they have cost the least so far, and
 * waits until they have ended before it decides again.
 */
export class Reclaim {
  /** In the order of their dispatch. */
  readonly #inFlight = new Set<QueuedRequest>();
  readonly #aborted = new Set<QueuedRequest>();
  readonly #aborts = new Map<string, number>();
  #shutOutSinceMs: number | null = null;

  onDispatched(request: QueuedRequest): void {
    this.#inFlight.add(request);
  }

  onEnded(request: QueuedRequest): void {
    this.#inFlight.delete(request);
    this.#aborted.delete(request);
  }

  /**
   * The requests to abort now.
   *
   * @param isShutOut whether a request of a higher band waits because the pool is full
   */
  decide(isShutOut: boolean, nowMs: number): readonly QueuedRequest[] {
    this.#shutOutSinceMs = isShutOut ? (this.#shutOutSinceMs ?? nowMs) : null;
    if (this.#shutOutSinceMs === null || this.#aborted.size > 0) return [];
    if (nowMs - this.#shutOutSinceMs < PATIENCE_MS) return [];
    const chosen: QueuedRequest[] = [];
    for (const one of [...this.#inFlight].reverse()) {
      if (chosen.length === MAX_PER_DECISION) break;
      if (!one.hasAnswerBegun && this.#abortsOf(one) < MAX_PER_ID) chosen.push(one);
    }
    for (const request of chosen) this.#note(request);
    return chosen;
  }

  #abortsOf({ id }: QueuedRequest): number {
    return id === null ? 0 : (this.#aborts.get(id) ?? 0);
  }

  #note(request: QueuedRequest): void {
    this.#aborted.add(request);
    if (request.id === null) return;
    const aborts = this.#abortsOf(request) + 1;
    this.#aborts.delete(request.id);
    this.#aborts.set(request.id, aborts);
    if (this.#aborts.size <= REMEMBERED_IDS) return;
    for (const oldest of this.#aborts.keys()) return void this.#aborts.delete(oldest);
  }
}
