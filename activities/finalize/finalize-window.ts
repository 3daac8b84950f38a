import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';

/**
 * Measures how long workers have tried to make the files of a batch that must end
 * (docs/design/ends.md#finalization-window). Time in which a worker tries counts, and so do the pauses
 * between tries; time without a worker does not. Heartbeats carry the measured time from attempt to attempt.
 * A lost heartbeat makes the window longer, never shorter.
 */
export class FinalizeWindow {
  readonly #windowMs: number | null;
  #spentMs: number;
  #atMs: number | null;
  /** False until a stop of the batch is known. Time before that does not count. */
  #isCounted: boolean;

  constructor(options: { windowMs: number | null; earlier: unknown; isCounted: boolean }) {
    this.#windowMs = options.windowMs;
    const { spentMs, atMs, counted } = (options.earlier ?? {}) as Partial<Record<string, unknown>>;
    // If an earlier attempt knew of a stop, the pause before this attempt counts too.
    this.#isCounted = options.isCounted || counted === true;
    this.#spentMs = typeof spentMs === 'number' ? spentMs : 0;
    this.#atMs = typeof atMs === 'number' ? atMs : null;
  }

  /** Counts time from now on. Call it when a stop is known. */
  count(): void {
    this.#isCounted = true;
  }

  /** Counts the time until now and returns the heartbeat details. */
  beat(nowMs: number): { spentMs: number; atMs: number; counted: boolean } {
    const gapMs = nowMs - (this.#atMs ?? nowMs);
    if (this.#isCounted) this.#spentMs += Math.min(Math.max(0, gapMs), LONGEST_PAUSE_MS);
    this.#atMs = nowMs;
    return { spentMs: this.#spentMs, atMs: nowMs, counted: this.#isCounted };
  }

  get isOver(): boolean {
    return this.#isCounted && this.#windowMs !== null && this.#spentMs >= this.#windowMs;
  }

  /** @throws finalize_window_over */
  check(): void {
    if (this.isOver) throw this.#over('batch.finalize_window has passed');
  }

  /** The error that a failed attempt throws: after the window it is not retried. */
  judge(error: unknown): unknown {
    if (!this.isOver || error instanceof CancelledFailure) return error;
    return this.#over(error instanceof Error ? error.message : 'unknown');
  }

  #over(reason: string): ApplicationFailure {
    return ApplicationFailure.create({
      message: failureText(`The result files could not be made in time. The last try: ${reason}`),
      type: 'finalize_window_over',
      nonRetryable: true,
    });
  }
}

/** Longer than any pause between two tries. In a longer gap there was no worker, so only this much counts. */
const LONGEST_PAUSE_MS = 30_000;
