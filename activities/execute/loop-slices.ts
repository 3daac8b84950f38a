import type { ReleaseHold } from '../../inference/dispatcher';

/** Work that is done in one go, in less than a millisecond. */
export interface SliceTask {
  /** Must not throw. */
  onSlice(): void;
}

/** How long the tasks of one turn of the event loop may take together, ms. */
const SLICE_MS = 4;

/**
 * Does small tasks in their order, a slice of them in each turn of the event loop: first everything that was ready is
 * read, then tasks are done, then the permits that they gave back are used
 * (docs/design/execution.md#answers-in-slices).
 */
export class LoopSlices {
  readonly #permits: ReleaseHold;
  readonly #waiting: SliceTask[] = [];
  /** A slice runs, or will run in the next turn. */
  #isArmed = false;
  readonly #onTurn = (): void => this.#doSlice();

  constructor(permits: ReleaseHold) {
    this.#permits = permits;
  }

  /** Does the task soon, and never before this returns. */
  do(task: SliceTask): void {
    this.#waiting.push(task);
    if (!this.#isArmed) this.#arm();
  }

  #arm(): void {
    this.#isArmed = true;
    setImmediate(this.#onTurn);
  }

  #doSlice(): void {
    this.#permits.holdReleases();
    try {
      this.#doTasks(performance.now() + SLICE_MS);
    } finally {
      this.#permits.endHold();
    }
    if (this.#waiting.length > 0) this.#arm();
    else this.#isArmed = false;
  }

  /**
   * Under load there are always further tasks, so those that are done are let go in each slice. When they were kept until
   * none waited, every request became old in the heap: collections of the young generation took 1.8 times as long.
   */
  #doTasks(endsMs: number): void {
    let done = 0;
    do this.#waiting[done++]?.onSlice();
    while (done < this.#waiting.length && performance.now() < endsMs);
    this.#waiting.splice(0, done);
  }
}
