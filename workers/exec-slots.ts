import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';

/** A slot that a poll has reserved, or that a chunk uses. */
class ExecSlot implements SlotPermit {
  readonly queue: string;
  isUsed = false;

  constructor(queue: string) {
    this.queue = queue;
  }
}

interface Waiting {
  readonly queue: string;
  grant(slot: ExecSlot): void;
}

/**
 * Limits how many chunks one process runs at once, in all its task queues together. Every queue has a
 * Temporal worker of its own, and all of them get their slots here.
 *
 * The SDK reserves a slot before it polls, and keeps it while the poll waits for work. If open polls
 * counted in full, the polls of many idle queues would use up all slots, and further queues would never be
 * polled. So each queue may always have one open poll while fewer than `limit` chunks run. Its price: at
 * most one chunk more than `limit` for each further queue, if all polls return at the same moment
 * (docs/design/execution.md#task-queues).
 */
export class ExecSlots implements CustomSlotSupplier<ActivitySlotInfo> {
  readonly type = 'custom';
  readonly #limit: number;
  readonly #reserved = new Set<ExecSlot>();
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>();
  #used = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Chunks that run now. */
  get used(): number {
    return this.#used;
  }

  reserveSlot({ taskQueue }: { taskQueue: string }, signal: AbortSignal): Promise<SlotPermit> {
    const slot = this.tryReserveSlot({ taskQueue });
    if (slot !== null) return Promise.resolve(slot);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        queue: taskQueue,
        grant: (granted) => {
          signal.removeEventListener('abort', giveUp);
          resolve(granted);
        },
      };
      const giveUp = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(waiting);
    });
  }

  tryReserveSlot({ taskQueue }: { taskQueue: string }): SlotPermit | null {
    if (!this.#mayPoll(taskQueue)) return null;
    const slot = new ExecSlot(taskQueue);
    this.#reserved.add(slot);
    return slot;
  }

  markSlotUsed({ permit }: { permit: SlotPermit }): void {
    if (!(permit instanceof ExecSlot) || permit.isUsed || !this.#reserved.has(permit)) return;
    permit.isUsed = true;
    this.#used++;
    // The queue has one open poll fewer, so it may be waiting for its next one.
    this.#grantWaiting();
  }

  releaseSlot({ permit }: { permit: SlotPermit }): void {
    if (!(permit instanceof ExecSlot) || !this.#reserved.delete(permit)) return;
    if (permit.isUsed) this.#used--;
    this.#grantWaiting();
  }

  #mayPoll(queue: string): boolean {
    if (this.#used >= this.#limit) return false;
    if (this.#reserved.size < this.#limit) return true;
    return ![...this.#reserved].some((slot) => !slot.isUsed && slot.queue === queue);
  }

  #grantWaiting(): void {
    for (const waiting of this.#waiting) {
      if (this.#used >= this.#limit) return;
      if (!this.#mayPoll(waiting.queue)) continue;
      this.#waiting.delete(waiting);
      const slot = new ExecSlot(waiting.queue);
      this.#reserved.add(slot);
      waiting.grant(slot);
    }
  }
}
