import type { Batch } from 'openai/resources/batches';
import { isNightshiftError } from '../../core/errors';

/** Exit statuses of the batch commands. Scripts rely on them. */
export const EXIT = {
  completed: 0,
  localError: 1,
  failed: 2,
  completedWithFailures: 3,
  cancelled: 4,
  expired: 5,
  unreachable: 6,
  interrupted: 130,
} as const;

/** One of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Help text of the commands whose exit status is that of a batch. */
export const BATCH_EXIT_HELP = `
Exit status:
    0  completed, every request succeeded
    1  wrong usage, a local error, or the server refused the request
    2  failed: the input file was rejected, or the server gave up on the batch
    3  completed, but some requests failed
    4  cancelled
    5  expired
    6  the server cannot be reached, or does not work
  130  interrupted by Ctrl-C; a batch that was created continues`;

/** Help text of the commands that make one request. */
export const PLAIN_EXIT_HELP = `
Exit status:
    0  done
    1  wrong usage, a local error, or the server refused the request
    6  the server cannot be reached, or does not work
  130  interrupted by Ctrl-C`;

/** Whether the batch has a terminal status. */
export function hasEnded({ status }: Pick<Batch, 'status'>): boolean {
  return ['completed', 'failed', 'expired', 'cancelled'].includes(status);
}

/** Exit status for an ended batch. A running batch counts as interrupted. */
export function exitCodeOf(batch: Batch): ExitCode {
  switch (batch.status) {
    case 'completed':
      return (batch.request_counts?.failed ?? 0) > 0 ? EXIT.completedWithFailures : EXIT.completed;
    case 'failed':
      return EXIT.failed;
    case 'cancelled':
      return EXIT.cancelled;
    case 'expired':
      return EXIT.expired;
    case 'validating':
    case 'in_progress':
    case 'finalizing':
    case 'cancelling':
      return EXIT.interrupted;
  }
}

/** Exit status for a command that threw `error`. */
export function exitCodeOfError(error: unknown): ExitCode {
  return isNightshiftError(error, 'unavailable') ? EXIT.unreachable : EXIT.localError;
}
