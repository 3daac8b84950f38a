import { FairQueue } from '../core/dispatch/fair-queue';

/** One limit and its queue. A waiter holds a permit of every earlier stage of its path. */
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

  /** Whether a newcomer gets a permit at once: there is room, and it overtakes no waiter. */
  get isOpen(): boolean {
    return this.queue.size === 0 && this.hasRoom;
  }
}
