import { retry, RETRY_POLICIES } from '../../core/async/retry';
import { isNightshiftError } from '../../core/errors';
import type { Logger } from '../../platform/logger';
import { pause } from '../runtime/pause';

/** How the failures of a step are reported, and when to give up. */
export interface RetryStepOptions {
  /** Aborts when the attempt is cancelled. Then the last error is thrown. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** Name of the step in the log. */
  readonly what: string;
  onFailure(error: Error): void;
}

/** Repeats a step of a chunk while it fails with a retryable error. */
export function retryStep<T>(
  work: () => Promise<T>,
  { signal, logger, what, onFailure }: RetryStepOptions,
): Promise<T> {
  return retry(work, {
    policy: RETRY_POLICIES.chunkStep,
    nowMs: () => performance.now(),
    sleep: (ms) => pause(ms, signal),
    isRetryable: (error) => !signal.aborted && isNightshiftError(error) && error.retryable,
    onRetry: (error, pauseMs) => {
      onFailure(error as Error);
      logger.warn({ err: error, pauseMs }, `${what} failed, trying again`);
    },
  });
}
