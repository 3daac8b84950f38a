import { FairQueue } from '../core/dispatch/fair-queue';

/** One limit, and what waits for room under it. A waiter holds a permit of every stage before. */
export class PermitStage<Waiter> {
  readonly queue: FairQueue<Waiter>;
  readonly #hasRoom: (held: number) => boolean;
  held = 0;

  constructor(hasRoom: (held: number) => boolean, weightOf: (tenant: string) => number) {
    this.#hasRoom = hasRoom;
    this.queue = new FairQueue(weightOf);
  }

  get hasRoom(): boolean {
    return this.#hasRoom(this.held);
  }

  /** Whether a newcomer may pass at once: it never overtakes a waiter. */
  get isOpen(): boolean {
    return this.queue.size === 0 && this.hasRoom;
  }
}
