/**
 * Lets one loop wait until something has happened. A wake-up between two waits is not lost.
 */
export class AutoResetEvent {
  #pending = false;
  #resolve: (() => void) | null = null;

  /** Ends the present wait, or the next one at once. */
  set(): void {
    const resolve = this.#resolve;
    this.#resolve = null;
    if (resolve === null) this.#pending = true;
    else resolve();
  }

  /** Waits for {@link set}, at most `timeoutMs`. */
  async wait(timeoutMs: number): Promise<void> {
    if (this.#pending) {
      this.#pending = false;
      return;
    }
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#resolve = resolve;
      timer = setTimeout(
        () => {
          this.#resolve = null;
          resolve();
        },
        Math.max(0, timeoutMs),
      );
    });
    clearTimeout(timer);
  }
}
