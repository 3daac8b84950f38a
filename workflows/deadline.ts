import { CancellationScope, sleep } from '@temporalio/workflow';
import type { StopControl } from './stop';

/** A batch that lasts longer is looked at. */
const LONG_MS = 10_000;

/**
 * The end of a batch's completion window. The timer runs until the batch has ended, because finalization
 * may find lines without an answer. While every line is settled, the deadline is held: it may pass, but the
 * batch does not expire unless the deadline is released (docs/design/ends.md#expiry).
 */
export class Deadline {
  readonly #stop: StopControl;
  readonly #timer = new CancellationScope();
  #isHeld = false;
  #hasPassed = false;

  constructor(stop: StopControl) {
    this.#stop = stop;
  }

  /**
   * Starts the timer. With `onLong`, that is called first, if the batch lasts so long that operators look at it. Both
   * share a timer, so that a batch which has ended by then costs no further events.
   */
  watch(atMs: number, onLong?: () => void): void {
    const wait = this.#timer.run(async () => {
      if (onLong !== undefined && atMs - Date.now() > LONG_MS) {
        await sleep(LONG_MS, { summary: 'show the phase' });
        onLong();
      }
      await sleep(Math.max(1, atMs - Date.now()), { summary: 'end of the completion window' });
      this.pass();
    });
    wait.catch(() => undefined);
  }

  /** Expires the batch, unless the deadline is held. */
  pass(): void {
    this.#hasPassed = true;
    if (!this.#isHeld) this.#stop.request('expired');
  }

  /** Call it when every line is settled. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Call it when lines turn out to lack an answer. If the deadline has passed, the batch expires now. */
  release(): void {
    this.#isHeld = false;
    if (this.#hasPassed) this.pass();
  }

  /** Stops the timer. */
  cancel(): void {
    this.#timer.cancel();
  }
}
