import { AbortFanOut } from './abort-fan-out';

/** Reserved for each answer; most answers are smaller. */
const ANSWER_BYTES = 256 * 1024;
/** A reader that is resumed adds at most this many bytes before it calls `grow` again. */
const READ_STEP_BYTES = 64 * 1024;

/** Admission by memory, beside the dispatcher's admission by number. */
export interface MemoryBudget {
  /**
   * Waits, first come, first served, until a body and 256 KiB for its answer fit. A reservation that is
   * larger than the budget is granted when nothing else is reserved.
   * @throws AbortError if `signal` aborts first
   */
  reserve(bodyBytes: number, signal?: AbortSignal): Promise<Reservation>;
  /** A reservation at once, or null if `reserve` would wait. */
  tryReserve(bodyBytes: number): Reservation | null;
  /** For gauges. */
  stats(): { readonly usedBytes: number; readonly limitBytes: number; readonly waiting: number };
}

/** Memory of one request, from before it is sent until its answer is written. */
export interface Reservation {
  /** Counts bytes of the answer that have arrived. Stop reading until a returned promise resolves. */
  grow(bytes: number): Promise<void> | undefined;
  /** Gives everything back; a second call does nothing. */
  release(): void;
}

/**
 * Limits the memory of all requests in flight of one process to `concurrency.in_flight_bytes`
 * (docs/design/execution.md#memory).
 *
 * The size of an answer is not known before it has arrived, so it cannot be reserved. Reserving the
 * maximum (64 MiB) would let two requests run at a time. Reserving nothing would let a burst of large
 * answers exhaust the heap. So each request reserves 256 KiB for its answer, and larger answers take more
 * while they arrive. When the budget is used up, only the oldest large answer is read further. TCP passes
 * the back-pressure on to the model servers. One answer can always finish, so readers that wait for each
 * other's memory cannot deadlock. That answer may exceed the budget, by at most `limits.max_answer_bytes`.
 */
export function createMemoryBudget(limitBytes: number): MemoryBudget {
  if (!Number.isSafeInteger(limitBytes) || limitBytes < 1) {
    throw new RangeError(`limitBytes must be a whole number of at least 1, got ${limitBytes}`);
  }
  return new Budget(limitBytes);
}

interface Waiter {
  readonly bytes: number;
  readonly grant: (reservation: Reservation) => void;
}

class Budget implements MemoryBudget {
  readonly #limitBytes: number;
  readonly #waiters = new Set<Waiter>();
  /** Reservations whose answer has outgrown its 256 KiB, oldest first. */
  readonly #readers = new Set<Held>();
  readonly #aborts = new AbortFanOut();
  #usedBytes = 0;
  #reservations = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  tryReserve(bodyBytes: number): Reservation | null {
    const bytes = bodyBytes + ANSWER_BYTES;
    return this.#waiters.size === 0 && this.#fits(bytes) ? this.#hold(bytes) : null;
  }

  reserve(bodyBytes: number, signal?: AbortSignal): Promise<Reservation> {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const granted = this.tryReserve(bodyBytes);
    if (granted) return Promise.resolve(granted);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        bytes: bodyBytes + ANSWER_BYTES,
        grant: (reservation) => {
          unsubscribe?.();
          resolve(reservation);
        },
      };
      this.#waiters.add(waiter);
      const unsubscribe =
        signal && this.#aborts.add(signal, () => this.#stopWaiting(waiter, signal, reject));
    });
  }

  stats(): { usedBytes: number; limitBytes: number; waiting: number } {
    return {
      usedBytes: this.#usedBytes,
      limitBytes: this.#limitBytes,
      waiting: this.#waiters.size,
    };
  }

  #stopWaiting(waiter: Waiter, signal: AbortSignal, reject: (error: Error) => void): void {
    this.#waiters.delete(waiter);
    reject(abortError(signal));
    // A large waiter may have blocked smaller ones behind it that fit.
    this.#handOut();
  }

  #fits(bytes: number): boolean {
    return this.#reservations === 0 || this.#usedBytes + bytes <= this.#limitBytes;
  }

  #hold(bytes: number): Reservation {
    const held = new Held(bytes);
    this.#reservations++;
    this.#usedBytes += bytes;
    return {
      grow: (more) => this.#grow(held, more),
      release: () => this.#release(held),
    };
  }

  #grow(held: Held, bytes: number): Promise<void> | undefined {
    const excess = held.take(bytes);
    if (excess === 0) return undefined;
    this.#usedBytes += excess;
    this.#readers.add(held);
    if (this.#usedBytes <= this.#limitBytes || held === first(this.#readers)) return undefined;
    return held.pause();
  }

  #release(held: Held): void {
    if (held.released) return;
    held.released = true;
    held.resume();
    this.#readers.delete(held);
    this.#reservations--;
    this.#usedBytes -= held.bytes;
    this.#handOut();
  }

  /** Gives freed memory to answers that are being read, oldest first, then to new reservations. */
  #handOut(): void {
    first(this.#readers)?.resume();
    let projectedBytes = this.#usedBytes;
    for (const reader of this.#readers) {
      projectedBytes += READ_STEP_BYTES;
      if (projectedBytes > this.#limitBytes) break;
      reader.resume();
    }
    for (const waiter of this.#waiters) {
      if (!this.#fits(waiter.bytes)) return;
      this.#waiters.delete(waiter);
      waiter.grant(this.#hold(waiter.bytes));
    }
  }
}

/** One reservation: its bytes, and whether its answer may be read. */
class Held {
  bytes: number;
  released = false;
  /** Unused bytes of the room that was reserved at the start. */
  #roomLeft = ANSWER_BYTES;
  #paused: { readonly until: Promise<void>; readonly end: () => void } | null = null;

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  /** @returns how many of the bytes no longer fit into the room reserved at the start */
  take(bytes: number): number {
    if (this.released) return 0;
    const excess = Math.max(0, bytes - this.#roomLeft);
    this.#roomLeft = Math.max(0, this.#roomLeft - bytes);
    this.bytes += excess;
    return excess;
  }

  pause(): Promise<void> {
    if (this.#paused === null) {
      let end = (): void => undefined;
      const until = new Promise<void>((resolve) => {
        end = resolve;
      });
      this.#paused = { until, end };
    }
    return this.#paused.until;
  }

  resume(): void {
    this.#paused?.end();
    this.#paused = null;
  }
}

function first<T>(items: ReadonlySet<T>): T | undefined {
  for (const item of items) return item;
  return undefined;
}

function abortError(signal: AbortSignal): DOMException {
  const error = new DOMException('the wait for memory was aborted', 'AbortError');
  error.cause = signal.reason;
  return error;
}
