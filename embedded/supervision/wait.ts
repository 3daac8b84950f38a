import { setTimeout as delay } from 'node:timers/promises';
import { NightshiftError, type ErrorCode } from '../../core/errors';

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  readonly signal?: AbortSignal;
  /** What was waited for, and the error's code, when time is up. */
  readonly what: string;
  readonly code: ErrorCode;
}

/**
 * Polls until `condition` holds.
 *
 * @throws the code in `options` when time is up; the reason of `signal` when that aborts
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  options: WaitOptions,
): Promise<void> {
  const { timeoutMs, intervalMs = 50, signal, what, code } = options;
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    signal?.throwIfAborted();
    if (performance.now() >= deadlineMs) {
      throw new NightshiftError(code, `${what} did not happen within ${timeoutMs / 1_000} s`);
    }
    await delay(intervalMs, undefined, signal === undefined ? {} : { signal });
  }
}
