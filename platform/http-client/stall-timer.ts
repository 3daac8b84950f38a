/**
 * Calls back once when nothing moved for a time. Progress costs one reading of the clock, because the timer is
 * armed again only when it fires.
 */
export class StallTimer {
  readonly #timeoutMs: number;
  readonly #onStall: () => void;
  #timer: NodeJS.Timeout | null = null;
  #lastMs = 0;

  constructor(timeoutMs: number, onStall: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onStall = onStall;
  }

  start(): void {
    this.progress();
    this.#arm(this.#timeoutMs);
  }

  progress(): void {
    this.#lastMs = performance.now();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
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
      this.#timer = null;
      this.#onStall();
    }
  }
}
