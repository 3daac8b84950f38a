/** Timers that were started since the event loop last had its turn. */
const STARTED: StallTimer[] = [];

/**
 * Calls back once when nothing moved for a time. Progress costs one reading of the clock, because the timer is
 * armed again only when it fires. It is first armed at the end of the turn of the event loop: by then most short
 * answers are complete and need none.
 */
export class StallTimer {
  readonly #timeoutMs: number;
  readonly #onStall: () => void;
  #timer: NodeJS.Timeout | null = null;
  #isRunning = false;
  #lastMs = 0;

  constructor(timeoutMs: number, onStall: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onStall = onStall;
  }

  start(): void {
    this.progress();
    this.#isRunning = true;
    if (STARTED.push(this) === 1) setImmediate(StallTimer.#armStarted);
  }

  progress(): void {
    this.#lastMs = performance.now();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isRunning = false;
  }

  static #armStarted(this: void): void {
    for (const timer of STARTED.splice(0)) {
      if (timer.#isRunning && timer.#timer === null) timer.#arm(timer.#timeoutMs);
    }
  }

  #arm(delayMs: number): void {
    this.#timer = setTimeout(() => this.#check(true), delayMs);
  }

  #check(mayBeFrozen: boolean): void {
    if (this.#timer === null) return;
    const leftMs = this.#timeoutMs - (performance.now() - this.#lastMs);
    if (leftMs > 0) return this.#arm(Math.ceil(leftMs));
    // After a freeze of this process, timers fire before the sockets are read. Bytes may wait there.
    if (mayBeFrozen) setImmediate(() => this.#check(false));
    else {
      this.stop();
      this.#onStall();
    }
  }
}
