import { Link, LinkedList } from '../../core/dispatch/queue/linked-list';

/** What a {@link TimeLimit} ends. */
export interface Limited {
  onTimeLimit(): void;
}

/** A time limit that may end its owner. All of the same length share one timer of Node, because they end in their order. */
export class TimeLimit extends Link<TimeLimit> {
  readonly owner: Limited;
  /** On the monotonic clock, ms. */
  endsAtMs = 0;
  readonly #limits: LimitsOfLength;

  /** Begins. @param ms its length, at least 1 and at most what a timer of Node takes */
  constructor(ms: number, owner: Limited) {
    super();
    this.owner = owner;
    this.#limits = limitsOf(ms);
    this.#limits.start(this);
  }

  /** Begins anew, unless it was stopped or has ended. */
  restart(): void {
    if (this.list !== null) this.#limits.start(this);
  }

  stop(): void {
    this.#limits.stop(this);
  }
}

/** By length in ms; only those that run. */
const byLength = new Map<number, LimitsOfLength>();

function limitsOf(ms: number): LimitsOfLength {
  let limits = byLength.get(ms);
  if (limits === undefined) {
    limits = new LimitsOfLength(ms);
    byLength.set(ms, limits);
  }
  return limits;
}

class LimitsOfLength {
  readonly #ms: number;
  /** The first one ends first. */
  readonly #running = new LinkedList<TimeLimit>();
  #timer: NodeJS.Timeout | null = null;

  constructor(ms: number) {
    this.#ms = ms;
  }

  start(limit: TimeLimit): void {
    this.#running.remove(limit);
    limit.endsAtMs = performance.now() + this.#ms;
    this.#running.push(limit);
    this.#timer ??= setTimeout(() => this.#onTimer(), this.#ms);
  }

  stop(limit: TimeLimit): void {
    this.#running.remove(limit);
    // A timer without a limit would keep the process alive.
    if (this.#running.size === 0) this.#forget();
  }

  #onTimer(): void {
    this.#timer = null;
    const nowMs = performance.now();
    for (let first = this.#running.first; first !== null; first = this.#running.first) {
      if (first.endsAtMs > nowMs) return this.#wakeIn(first.endsAtMs - nowMs);
      this.#running.remove(first);
      first.owner.onTimeLimit();
    }
    if (this.#timer === null) this.#forget();
  }

  #wakeIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#onTimer(), Math.ceil(ms));
  }

  #forget(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (byLength.get(this.#ms) === this) byLength.delete(this.#ms);
  }
}
