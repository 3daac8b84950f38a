import {
  PermitQueue,
  type PermitQueueOptions,
  type QueueTurn,
} from '../core/dispatch/permits/permit-queue';
import type { PermitRequest } from '../core/dispatch/permits/permit-turn';
import type { PermitSupply } from './loans/permit-source';

/** How many permits of a limit this process may hold. */
export interface StageLimit {
  hasRoom(held: number): boolean;
  /** A request begins to wait. */
  onWait(): void;
  /** A permit was given back, and `held` are left. */
  onFreed(held: number): void;
}

/** Room for as many requests as there are permits. */
export function suppliedBy(supply: PermitSupply): StageLimit {
  return {
    hasRoom: (held) => held < supply.permits,
    onWait: () => supply.onWait(),
    onFreed: (held) => supply.onFreed(held),
  };
}

/** One limit and its queue. A waiter holds a permit of every earlier stage of its path. */
export class PermitStage<Waiter> {
  readonly queue: PermitQueue<Waiter | null>;
  readonly #limit: StageLimit;
  #held = 0;

  constructor(limit: StageLimit, options: PermitQueueOptions) {
    this.#limit = limit;
    this.queue = new PermitQueue(options);
  }

  /** Permits that are held. */
  get held(): number {
    return this.#held;
  }

  get hasRoom(): boolean {
    return this.#limit.hasRoom(this.#held);
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
    this.#limit.onWait();
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
    this.#limit.onFreed(this.#held);
  }

  /** Takes a permit back that its holder could not use, and makes it wait first. */
  recall(turn: QueueTurn<Waiter | null>): void {
    this.#held--;
    this.queue.giveBack(turn);
    this.#limit.onFreed(this.#held);
  }
}
