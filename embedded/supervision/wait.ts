import { setTimeout as delay } from 'node:timers/promises';
import { NightshiftError, type ErrorCode } from '../../core/errors';

/** How long to wait, and the error of a timeout. */
export interface WaitOptions {
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  /** Subject of the error, such as `end of api`. */
  readonly what: string;
  readonly code: ErrorCode;
}

/** Polls until `condition` holds. @throws the code in `options` when the time is up */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  { timeoutMs, intervalMs = 50, what, code }: WaitOptions,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() >= deadlineMs) {
      throw new NightshiftError(code, `${what} did not happen within ${timeoutMs / 1_000} s`);
    }
    await delay(intervalMs);
  }
}
