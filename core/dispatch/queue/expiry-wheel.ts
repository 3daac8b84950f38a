/** Length of a tick, ms: elements are due at most this late. */
export const TICK_MS = 100;
/** One turn of the wheel lasts 102 s, longer than most waits. */
const SLOTS = 1_024;

/** An element of at most one {@link ExpiryWheel}, which keeps these fields in it. */
export interface Expiring<T> {
  /** The tick in which it is due; -1 while it is not scheduled. */
  dueTick: number;
  /** Its neighbours in the slot. */
  previousDue: T | null;
  nextDue: T | null;
}

/**
 * A hashed timing wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987): to schedule
 * and to cancel takes O(1) steps. Each slot is a linked list; elements that are due in a later turn of the
 * wheel are passed over. The caller drives it, one due element at a time.
 */
export class ExpiryWheel<T extends Expiring<T>> {
  readonly #firsts = new Array<T | null>(SLOTS).fill(null);
  readonly #lasts = new Array<T | null>(SLOTS).fill(null);
  /** Everything that is due in earlier ticks was taken. */
  #tick: number;
  /** The next element to look at in the slot of `#tick`; null for the first. */
  #cursor: T | null = null;

  constructor(nowMs: number) {
    this.#tick = Math.floor(nowMs / TICK_MS);
  }

  /** Schedules an element, also one that is scheduled already. It is never due before `dueMs`. */
  schedule(element: T, dueMs: number): void {
    this.cancel(element);
    element.dueTick = Math.max(Math.ceil(dueMs / TICK_MS), this.#tick + 1);
    const slot = element.dueTick % SLOTS;
    const last = this.#lasts[slot] ?? null;
    element.previousDue = last;
    if (last === null) this.#firsts[slot] = element;
    else last.nextDue = element;
    this.#lasts[slot] = element;
  }

  cancel(element: T): void {
    if (element.dueTick === -1) return;
    const slot = element.dueTick % SLOTS;
    const { previousDue, nextDue } = element;
    if (previousDue === null) this.#firsts[slot] = nextDue;
    else previousDue.nextDue = nextDue;
    if (nextDue === null) this.#lasts[slot] = previousDue;
    else nextDue.previousDue = previousDue;
    if (this.#cursor === element) this.#cursor = nextDue;
    element.dueTick = -1;
    element.previousDue = null;
    element.nextDue = null;
  }

  /** Takes the next element that is due at `nowMs`; null if there is none. */
  popDue(nowMs: number): T | null {
    const nowTick = Math.floor(nowMs / TICK_MS);
    // After a freeze, one turn of the wheel visits every element.
    if (this.#tick < nowTick - SLOTS) {
      this.#tick = nowTick - SLOTS;
      this.#cursor = null;
    }
    for (;;) {
      const element = this.#nextInSlot(nowTick);
      if (element !== null) return element;
      if (this.#tick >= nowTick) return null;
      this.#tick++;
    }
  }

  #nextInSlot(nowTick: number): T | null {
    let element = this.#cursor ?? this.#firsts[this.#tick % SLOTS] ?? null;
    while (element !== null && element.dueTick > nowTick) element = element.nextDue;
    this.#cursor = element?.nextDue ?? null;
    if (element !== null) this.cancel(element);
    return element;
  }
}
