import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';

/**
 * How long workers have tried to make the files of a batch that is to end. Only time in which one was at
 * it counts: a pause between two tries does, a night without workers does not. Carried from attempt to
 * attempt in their heartbeats; one that was lost makes the window longer, never shorter.
 */
export class FinalizeWindow {
  readonly #windowMs: number | null;
  #spentMs: number;
  #atMs: number | null;
  /** False while nobody has asked for an end, as far as is known: tries are not counted. */
  #isCounted: boolean;

  constructor(options: { windowMs: number | null; earlier: unknown; isCounted: boolean }) {
    this.#windowMs = options.windowMs;
    const { spentMs, atMs, counted } = (options.earlier ?? {}) as Partial<Record<string, unknown>>;
    // Also before this attempt has read the row again: the pause before it counts.
    this.#isCounted = options.isCounted || counted === true;
    this.#spentMs = typeof spentMs === 'number' ? spentMs : 0;
    this.#atMs = typeof atMs === 'number' ? atMs : null;
  }

  /** An end has been asked for: from now on tries count. */
  count(): void {
    this.#isCounted = true;
  }

  /** What a heartbeat carries. */
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
    if (this.isOver) throw this.#over('the window is over');
  }

  /** What an attempt that failed so throws: the last one is not tried again. */
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

/** More than lies between two tries: what is longer is a time without a worker. */
const LONGEST_PAUSE_MS = 30_000;
