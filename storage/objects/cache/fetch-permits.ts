/** Fetches at the same time, of at most 1 MiB each: enough for the bandwidth of a host, and a bound on memory. */
const MAX_FETCHES = 16;

/** Limits how many fetches of the cache run at the same time; further ones wait, first come, first served. */
export class FetchPermits {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  get isFree(): boolean {
    return this.#running < MAX_FETCHES;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.isFree) this.#running++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // A waiter takes over the permit, so no newcomer can overtake it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
