import { CancellationScope, sleep } from '@temporalio/workflow';
import type { StopControl } from './stop';

/**
 * The end of a batch's window. Its timer runs until the batch has ended: a finalization may find lines
 * without an answer. While it is held, because every line is settled, its passing is only noted.
 */
export class Deadline {
  readonly #stop: StopControl;
  readonly #timer = new CancellationScope();
  #isHeld = false;
  #hasPassed = false;

  constructor(stop: StopControl) {
    this.#stop = stop;
  }

  watch(atMs: number): void {
    const wait = this.#timer.run(async () => {
      await sleep(Math.max(1, atMs - Date.now()), { summary: 'end of the completion window' });
      this.pass();
    });
    wait.catch(() => undefined);
  }

  /** The window is over: an end, unless every line is settled. */
  pass(): void {
    this.#hasPassed = true;
    if (!this.#isHeld) this.#stop.request('expired');
  }

  /** Every line is settled: time cannot expire the batch. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Lines turned out to lack an answer. */
  release(): void {
    this.#isHeld = false;
    if (this.#hasPassed) this.pass();
  }

  cancel(): void {
    this.#timer.cancel();
  }
}
