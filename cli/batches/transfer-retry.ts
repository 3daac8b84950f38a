import { RETRY_POLICIES, retry } from '../../core/async/retry';
import { isNightshiftError } from '../../core/errors';
import { humanDuration } from './human-format';
import type { Interrupts } from './interrupts';
import type { Reporter } from './reporter';

/** How often a transfer is attempted, and how its failures are reported. */
export interface TransferRetryOptions {
  readonly attempts: number;
  /** What the next attempt does, such as `uploading`. */
  readonly action: string;
  readonly interrupts: Interrupts;
  readonly reporter: Reporter;
  /** Whether another attempt is still allowed. Default: always. */
  mayRepeat?(): boolean;
}

/**
 * Repeats an upload or a download that failed with `unavailable`, unless the user interrupts it. The number
 * of attempts is limited, not the time, because one attempt may take hours.
 */
export function retryTransfer<T>(
  { attempts, action, interrupts, reporter, mayRepeat = () => true }: TransferRetryOptions,
  work: () => Promise<T>,
): Promise<T> {
  let attempt = 0;
  return retry(
    () => {
      attempt += 1;
      return work();
    },
    {
      policy: RETRY_POLICIES.transfer,
      nowMs: () => performance.now(),
      sleep: (ms) => interrupts.sleep(ms),
      isRetryable: (error) =>
        attempt < attempts &&
        interrupts.pending === null &&
        isNightshiftError(error, 'unavailable') &&
        mayRepeat(),
      onRetry: (error, pauseMs) => {
        const reason = (error as Error).message;
        reporter.say(`${reason}; ${action} again in ${humanDuration(pauseMs)}`);
      },
    },
  );
}
