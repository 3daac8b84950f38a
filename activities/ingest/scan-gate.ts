interface Waiting {
  readonly exclusive: boolean;
  start(): void;
}

/**
 * Lets input files be read: any number concurrently, or one suspect file exclusively
 * (docs/design/batch-path.md#files-that-kill-workers).
 */
export class ScanGate {
  readonly #queue: Waiting[] = [];
  #running = 0;
  #isExclusive = false;

  /**
   * Runs `scan` when its turn comes, in order of arrival. If `signal` aborts first, rejects with its reason.
   */
  async run<T>(
    { exclusive, signal }: { readonly exclusive: boolean; readonly signal: AbortSignal },
    scan: () => Promise<T>,
  ): Promise<T> {
    await this.#turn(exclusive, signal);
    try {
      return await scan();
    } finally {
      this.#running--;
      this.#isExclusive = false;
      this.#next();
    }
  }

  #turn(exclusive: boolean, signal: AbortSignal): Promise<void> {
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
      const entry = { exclusive, start };
      this.#queue.push(entry);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      else this.#next();
    });
  }

  #next(): void {
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      if (this.#isExclusive || (first.exclusive && this.#running > 0)) return;
      this.#queue.shift();
      this.#running++;
      this.#isExclusive = first.exclusive;
      first.start();
    }
  }
}
