import { Link, LinkedList } from './linked-list';

/** Length of a tick, ms: timers fire at most this late. */
export const TICK_MS = 100;
/** One turn of the wheel lasts 102 s, longer than most waits. */
const SLOTS = 1_024;

/** A timer of an {@link ExpiryWheel}. It is created once and can be scheduled again. */
export class WheelTimer<T> extends Link<WheelTimer<T>> {
  readonly owner: T;
  dueTick = 0;

  constructor(owner: T) {
    super();
    this.owner = owner;
  }
}

/**
 * A hashed timing wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987): to schedule
 * and to cancel a timer takes O(1) steps. Its slots are lists of timers; timers that are due in a later turn
 * of the wheel are passed over. The caller drives it, one due timer at a time.
 */
export class ExpiryWheel<T> {
  readonly #slots = Array.from({ length: SLOTS }, () => new LinkedList<WheelTimer<T>>());
  /** All timers that are due in earlier ticks have fired. */
  #tick: number;
  /** The next timer to look at in the slot of `#tick`; null for the first. */
  #cursor: WheelTimer<T> | null = null;

  constructor(nowMs: number) {
    this.#tick = Math.floor(nowMs / TICK_MS);
  }

  /** Schedules a timer, also one that is scheduled already. It never fires before `dueMs`. */
  schedule(timer: WheelTimer<T>, dueMs: number): void {
    this.cancel(timer);
    timer.dueTick = Math.max(Math.ceil(dueMs / TICK_MS), this.#tick + 1);
    this.#slotOf(timer.dueTick).push(timer);
  }

  cancel(timer: WheelTimer<T>): void {
    timer.list?.remove(timer);
  }

  /** Takes the next timer that is due at `nowMs`; null if there is none. */
  popDue(nowMs: number): WheelTimer<T> | null {
    const nowTick = Math.floor(nowMs / TICK_MS);
    // After a freeze, one turn of the wheel visits every timer.
    this.#tick = Math.max(this.#tick, nowTick - SLOTS);
    for (;;) {
      const timer = this.#nextInSlot(nowTick);
      if (timer !== null) return timer;
      if (this.#tick >= nowTick) return null;
      this.#tick++;
    }
  }

  #nextInSlot(nowTick: number): WheelTimer<T> | null {
    const slot = this.#slotOf(this.#tick);
    let timer = this.#cursor?.list === slot ? this.#cursor : slot.first;
    while (timer !== null && timer.dueTick > nowTick) timer = timer.next;
    this.#cursor = timer?.next ?? null;
    if (timer !== null) slot.remove(timer);
    return timer;
  }

  #slotOf(tick: number): LinkedList<WheelTimer<T>> {
    return this.#slots[tick % SLOTS] as LinkedList<WheelTimer<T>>;
  }
}
