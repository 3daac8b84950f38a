import type { Permit, AcquireRequest } from './dispatcher';
import { FairQueue } from '../core/dispatch/fair-queue';
import type { ModelSlots } from './model-slots';
import type { QueuePlace } from '../core/dispatch/tenant-backlog';

/** Somebody who waits for a permit. */
export interface Waiter {
  readonly request: AcquireRequest;
  readonly slots: ModelSlots;
  readonly grant: (permit: Permit) => void;
  /** The stage it waits in, counted from 0 in the path of its model; its place in that queue. */
  at: number;
  place: QueuePlace<Waiter> | null;
}

/** One limit and those who wait for room under it. Who waits holds a slot in every stage before. */
export class PermitStage {
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

  /** Whether a newcomer may pass at once: nobody who waits is overtaken. */
  get isOpen(): boolean {
    return this.queue.size === 0 && this.#hasRoom(this.held);
  }
}
