import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';

/**
 * How long workers have tried to make the files of a batch that must end
 * (docs/design/ends.md#finalization-window). Only time in which a worker tries is counted, with the pauses
 * between two tries; a night without workers is not. Heartbeats carry the time from attempt to attempt. A
 * lost heartbeat makes the window longer, never shorter.
 */
export class FinalizeWindow {
  readonly #windowMs: number | null;
  #spentMs: number;
  #atMs: number | null;
  /** False while no end was asked for, as far as is known: then tries are not counted. */
  #isCounted: boolean;

  constructor(options: { windowMs: number | null; earlier: unknown; isCounted: boolean }) {
    this.#windowMs = options.windowMs;
    const { spentMs, atMs, counted } = (options.earlier ?? {}) as Partial<Record<string, unknown>>;
    // An earlier attempt knew of an end, so the pause before this attempt counts too.
    this.#isCounted = options.isCounted || counted === true;
    this.#spentMs = typeof spentMs === 'number' ? spentMs : 0;
    this.#atMs = typeof atMs === 'number' ? atMs : null;
  }

  /** Counts tries from now on, because an end was asked for. */
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

/** Longer than any pause between two tries: a longer gap is a time without a worker. */
const LONGEST_PAUSE_MS = 30_000;
