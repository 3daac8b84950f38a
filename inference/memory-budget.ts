import { AbortFanOut } from './abort-fan-out';

/** Room that every send takes beside its body, for the answer's first bytes. */
const ANSWER_ROOM_BYTES = 256 * 1024;
/** What a reader that may go on is expected to add before it asks again. */
const READ_STEP_BYTES = 64 * 1024;

/** Admission by memory, beside the admission by number of the dispatcher. */
export interface MemoryBudget {
  /**
   * Waits, first come first served, until body and 256 KiB for its answer fit. A reservation that
   * could never fit is granted when nothing else is reserved, so that one oversize item passes alone.
   * @throws AbortError when `signal` aborts first.
   */
  reserve(bodyBytes: number, signal?: AbortSignal): Promise<Reservation>;
  /** At once or null where `reserve` would wait. */
  tryReserve(bodyBytes: number): Reservation | null;
  /** For gauges. */
  stats(): { readonly usedBytes: number; readonly limitBytes: number; readonly waiting: number };
}

/** Memory of one send, from before it is sent until its answer needs none any more. */
export interface Reservation {
  /**
   * Counts bytes of the answer that have come in. A promise means: read no more until it resolves.
   * The oldest reader is never held, so that somebody always finishes.
   */
  grow(bytes: number): Promise<void> | undefined;
  /** Gives everything back; a second call does nothing. */
  release(): void;
}

/** Bytes in flight of one process, `concurrency.in_flight_bytes` (execution §3 "Memory"). */
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
  /** Reservations whose answer has outgrown its room, oldest first. */
  readonly #readers = new Set<Held>();
  readonly #aborts = new AbortFanOut();
  #usedBytes = 0;
  #reservations = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  tryReserve(bodyBytes: number): Reservation | null {
    const bytes = bodyBytes + ANSWER_ROOM_BYTES;
    return this.#waiters.size === 0 && this.#fits(bytes) ? this.#hold(bytes) : null;
  }

  reserve(bodyBytes: number, signal?: AbortSignal): Promise<Reservation> {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const granted = this.tryReserve(bodyBytes);
    if (granted) return Promise.resolve(granted);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        bytes: bodyBytes + ANSWER_ROOM_BYTES,
        grant: (reservation) => {
          unsubscribe?.();
          resolve(reservation);
        },
      };
      this.#waiters.add(waiter);
      const unsubscribe =
        signal && this.#aborts.add(signal, () => this.#leave(waiter, signal, reject));
    });
  }

  stats(): { usedBytes: number; limitBytes: number; waiting: number } {
    return {
      usedBytes: this.#usedBytes,
      limitBytes: this.#limitBytes,
      waiting: this.#waiters.size,
    };
  }

  #leave(waiter: Waiter, signal: AbortSignal, reject: (error: Error) => void): void {
    this.#waiters.delete(waiter);
    reject(abortError(signal));
    // It may have been a large one in front of small ones that fit.
    this.#settle();
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
    this.#settle();
  }

  /** Lets those go on who can: running answers first, oldest first, then new reservations. */
  #settle(): void {
    first(this.#readers)?.resume();
    let expectedBytes = this.#usedBytes;
    for (const reader of this.#readers) {
      expectedBytes += READ_STEP_BYTES;
      if (expectedBytes > this.#limitBytes) break;
      reader.resume();
    }
    for (const waiter of this.#waiters) {
      if (!this.#fits(waiter.bytes)) return;
      this.#waiters.delete(waiter);
      waiter.grant(this.#hold(waiter.bytes));
    }
  }
}

class Held {
  bytes: number;
  released = false;
  #roomLeft = ANSWER_ROOM_BYTES;
  #paused: { readonly until: Promise<void>; readonly end: () => void } | null = null;

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  /** Bytes that no longer fit into the room reserved at the start. */
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
