interface Waiting {
  readonly alone: boolean;
  start(): void;
}

/** Who reads input files in this process: any number side by side, or one suspect alone. */
export class ScanGate {
  readonly #queue: Waiting[] = [];
  #running = 0;
  #isAlone = false;

  /**
   * Runs `scan` when its turn comes, first come, first served. While it waits it ends with what `signal`
   * is aborted with.
   */
  async run<T>(
    { alone, signal }: { readonly alone: boolean; readonly signal: AbortSignal },
    scan: () => Promise<T>,
  ): Promise<T> {
    await this.#turn(alone, signal);
    try {
      return await scan();
    } finally {
      this.#running--;
      this.#isAlone = false;
      this.#next();
    }
  }

  #turn(alone: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#queue.splice(this.#queue.indexOf(entry), 1);
        reject(signal.reason as Error);
        this.#next();
      };
      const start = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const entry = { alone, start };
      this.#queue.push(entry);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      else this.#next();
    });
  }

  #next(): void {
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      if (this.#isAlone || (first.alone && this.#running > 0)) return;
      this.#queue.shift();
      this.#running++;
      this.#isAlone = first.alone;
      first.start();
    }
  }
}
