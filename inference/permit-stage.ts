import {
  PermitQueue,
  type PermitQueueOptions,
  type QueueTurn,
} from '../core/dispatch/permits/permit-queue';
import type { PermitRequest } from '../core/dispatch/permits/permit-turn';

/** One limit and its queue. A waiter holds a permit of every earlier stage of its path. */
export class PermitStage<Waiter> {
  readonly queue: PermitQueue<Waiter | null>;
  readonly #hasRoom: (held: number) => boolean;
  #held = 0;

  constructor(hasRoom: (held: number) => boolean, options: PermitQueueOptions) {
    this.#hasRoom = hasRoom;
    this.queue = new PermitQueue(options);
  }

  /** Permits that are held. */
  get held(): number {
    return this.#held;
  }

  get hasRoom(): boolean {
    return this.#hasRoom(this.#held);
  }

  /** Whether a newcomer gets a permit at once: there is room, and it overtakes no waiter. */
  get isOpen(): boolean {
    return this.queue.size === 0 && this.hasRoom;
  }

  /** Takes a permit of a stage that is open. `waiter` is who may have to wait for wider ones. */
  take(waiter: Waiter | null, request: PermitRequest): QueueTurn<Waiter | null> {
    const turn = this.queue.turnOf(waiter, request);
    this.queue.take(turn);
    this.#held++;
    return turn;
  }

  /** Waits for a permit. */
  wait(waiter: Waiter, request: PermitRequest): QueueTurn<Waiter | null> {
    const turn = this.queue.turnOf(waiter, request);
    this.queue.push(turn);
    return turn;
  }

  /** Gives a permit to the waiter whose turn it is; null if there is no permit or no waiter. */
  grant(): QueueTurn<Waiter | null> | null {
    if (this.queue.size === 0 || !this.hasRoom) return null;
    const turn = this.queue.shift();
    if (turn !== null) this.#held++;
    return turn;
  }

  /** Takes a permit back, whose request cost `cost`. */
  free(turn: QueueTurn<Waiter | null>, cost: number): void {
    this.#held--;
    this.queue.end(turn, cost);
  }

  /** Takes a permit back that its holder could not use, and makes it wait first. */
  recall(turn: QueueTurn<Waiter | null>): void {
    this.#held--;
    this.queue.giveBack(turn);
  }
}
