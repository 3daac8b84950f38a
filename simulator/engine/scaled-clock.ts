/** A pause of the process that is longer, such as that of a suspended laptop, is not caught up, ms. */
const MAX_JUMP_MS = 1_000;
/** Well below the longest jump, so that a wait that ends a little late loses no time, ms. */
const MAX_WAIT_MS = 500;

/**
 * A clock that can run slower than the wall clock, or stand still. The engine takes its time from here, so a
 * fault changes steps that have already begun. Wall times are arguments and must not decrease.
 */
export class ScaledClock {
  #wallMs: number;
  #nowMs = 0;
  #rate = 1;

  constructor(wallMs: number) {
    this.#wallMs = wallMs;
  }

  /** Time of this clock, ms. It starts at 0. */
  read(wallMs: number): number {
    const passed = Math.min(MAX_JUMP_MS, Math.max(0, wallMs - this.#wallMs));
    this.#wallMs = wallMs;
    this.#nowMs += passed * this.#rate;
    return this.#nowMs;
  }

  /** @param rate 1 is the speed of the wall clock, 0 stands still */
  setRate(wallMs: number, rate: number): void {
    this.read(wallMs);
    this.#rate = rate;
  }

  /** Wall time until this clock shows `atMs`; `null` if it stands still. Long waits are cut short: look again. */
  wallMsUntil(atMs: number): number | null {
    if (this.#rate === 0) return null;
    return Math.min(MAX_WAIT_MS, Math.max(0, atMs - this.#nowMs) / this.#rate);
  }
}
