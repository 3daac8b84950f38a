/** Timers of answers that take a fixed time. A stalled server starts and fires none. */
export class LatencyTimers {
  /** What is due while the server is stalled. */
  readonly #held = new Set<() => void>();
  #stalled = false;
  #slowdown = 1;

  /** Applies to all answers that are not sent yet; `slowdown` to those that come later. */
  setFaults({ stall, slowdown }: { readonly stall: boolean; readonly slowdown: number }): void {
    this.#stalled = stall;
    this.#slowdown = slowdown;
    if (stall) return;
    const due = [...this.#held];
    this.#held.clear();
    for (const run of due) run();
  }

  /** Whether an answer without delay may be sent at once. */
  get isStalled(): boolean {
    return this.#stalled;
  }

  /** Calls `run` after `delayMs`, and not before a stall ends. @returns cancels the call */
  after(delayMs: number, run: () => void): () => void {
    const fire = (): void => {
      if (this.#stalled) this.#held.add(run);
      else run();
    };
    const timer = setTimeout(fire, delayMs * this.#slowdown);
    return () => {
      clearTimeout(timer);
      this.#held.delete(run);
    };
  }
}
