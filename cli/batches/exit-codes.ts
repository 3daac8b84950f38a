import type { Batch } from 'openai/resources/batches';
import { isNightshiftError } from '../../core/errors';

/** What the exit status of `run`, `watch` and `results` says of the batch; scripts rely on it. */
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

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** For `--help` of the commands that end with a batch. */
export const BATCH_EXIT_HELP = `
Exit status:
    0  completed, every request succeeded
    1  usage or local error, or the server refused what was asked
    2  failed: the input file was rejected, or the server gave the batch up
    3  completed, but some requests failed
    4  cancelled
    5  expired
    6  server not reachable, or not working
  130  interrupted by Ctrl-C; a batch that was created goes on`;

/** For `--help` of the commands that ask or tell the server one thing. */
export const PLAIN_EXIT_HELP = `
Exit status:
    0  done
    1  usage or local error, or the server refused what was asked
    6  server not reachable, or not working
  130  interrupted by Ctrl-C`;

/** Whether a batch has reached a status that never changes again. */
export function hasEnded({ status }: Pick<Batch, 'status'>): boolean {
  return ['completed', 'failed', 'expired', 'cancelled'].includes(status);
}

/** Exit status of an ended batch; one that still runs counts as interrupted. */
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

/** Exit status of a command that threw. */
export function exitCodeOfError(error: unknown): ExitCode {
  return isNightshiftError(error, 'unavailable') ? EXIT.unreachable : EXIT.localError;
}
