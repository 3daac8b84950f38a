/** Steps after which a task lets other work of the process run. */
const STEPS_PER_SLICE = 256;

/** Calls a function as soon as other work of the process has had its turn, such as `setImmediate`. */
export type Defer = (resume: () => void) => void;

/**
 * Work in small steps, of which there may be 100,000 at once. It yields after every 256 steps, so that it
 * never blocks the process for long. Only one run is active at a time: a run that is requested meanwhile, also
 * by a step, continues the present one.
 */
export class SlicedTask {
  readonly #step: (nowMs: number) => boolean;
  readonly #now: () => number;
  readonly #defer: Defer;
  #state: 'idle' | 'running' | 'deferred' = 'idle';

  /** @param step does one step; returns false if nothing is left to do */
  constructor(step: (nowMs: number) => boolean, now: () => number, defer: Defer) {
    this.#step = step;
    this.#now = now;
    this.#defer = defer;
  }

  run(nowMs: number): void {
    if (this.#state === 'idle') this.#runSlice(nowMs);
  }

  #runSlice(nowMs: number): void {
    this.#state = 'running';
    for (let i = 0; i < STEPS_PER_SLICE; i++) {
      if (this.#step(nowMs)) continue;
      this.#state = 'idle';
      return;
    }
    this.#state = 'deferred';
    this.#defer(() => this.#runSlice(this.#now()));
  }
}
