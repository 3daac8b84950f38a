/** Lets one loop sleep until something has happened. A `set` between two waits ends the next wait. */
export class AutoResetEvent {
  #isSet = false;
  #resolve: (() => void) | null = null;

  /** Ends the present wait, or the next one at once. */
  set(): void {
    const resolve = this.#resolve;
    this.#resolve = null;
    if (resolve === null) this.#isSet = true;
    else resolve();
  }

  /** Waits for {@link set}, at most `timeoutMs`. */
  async wait(timeoutMs: number): Promise<void> {
    if (this.#isSet) {
      this.#isSet = false;
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
