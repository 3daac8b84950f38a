/** Lets one loop sleep until another part of the program wakes it. */
export class AutoResetEvent {
  #isSet = false;
  #resolve: (() => void) | null = null;

  /** Ends the current wait. If there is none, the next wait returns at once. */
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
