/** Limits how many tasks run at once. Further ones wait, first come, first served. */
export class ConcurrencyLimit {
  readonly #limit: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a task would start at once. */
  get hasRoom(): boolean {
    return this.#running < this.#limit;
  }

  /** Runs `task` as soon as there is room. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.hasRoom) this.#running++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      // A waiting task takes over the place, so that no newcomer can overtake it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
