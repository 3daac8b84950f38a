import { isNightshiftError } from '../../core/errors';
import type { Logger } from '../../platform/logger';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

/**
 * Repeats `work` while it fails with a retryable error: an object store that is away or full must
 * cost time, never an attempt of the chunk. Ends with the last error once `signal` is aborted.
 */
export async function patiently<T>(
  work: () => Promise<T>,
  options: {
    signal: AbortSignal;
    logger: Logger;
    what: string;
    onFailure(error: Error): void;
  },
): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      if (options.signal.aborted || !isNightshiftError(error) || !error.retryable) throw error;
      options.onFailure(error);
      options.logger.warn({ err: error, pauseMs }, `${options.what} failed, trying again`);
      await pause(pauseMs, options.signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
