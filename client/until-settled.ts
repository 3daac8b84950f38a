import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { retry, RETRY_POLICIES } from '../core/async/retry';
import { NightshiftError } from '../core/errors';

/** How long to repeat, and how an error names the work. */
export interface UntilSettledOptions {
  /** For the error message, such as `the schedule nightshift-sweep`. */
  readonly what: string;
  readonly limitMs?: number;
  readonly everyMs?: number;
}

/** gRPC codes of errors that another attempt would meet again. */
const PERMANENT = new Set([
  3, // INVALID_ARGUMENT
  5, // NOT_FOUND
  7, // PERMISSION_DENIED
  12, // UNIMPLEMENTED
  16, // UNAUTHENTICATED
]);

const { temporalStart: POLICY } = RETRY_POLICIES;

/**
 * Repeats `work` for half a minute while the server rejects it: a server that has just started accepts
 * connections before it can serve every call. @throws temporal_unavailable with the server's message, or
 * the SDK's error if another attempt could not succeed
 */
export async function untilSettled<T>(
  work: () => Promise<T>,
  { what, limitMs = POLICY.limitMs, everyMs = POLICY.firstPauseMs }: UntilSettledOptions,
): Promise<T> {
  try {
    return await retry(work, {
      policy: { firstPauseMs: everyMs, maxPauseMs: everyMs, limitMs },
      nowMs: () => performance.now(),
      sleep: (ms) => sleep(ms),
      isRetryable: (error) => temporaryMessage(error) !== null,
    });
  } catch (error) {
    const message = temporaryMessage(error);
    if (message === null) throw error;
    const text = `Temporal answers, but a call for ${what} failed: ${message}. Try again, or check the log of Temporal.`;
    throw new NightshiftError('temporal_unavailable', text, { cause: error });
  }
}

/** The server's message if another attempt could succeed, else null. */
function temporaryMessage(error: unknown): string | null {
  const cause = error instanceof ServiceError ? error.cause : error;
  if (!isGrpcServiceError(cause) || PERMANENT.has(cause.code)) return null;
  return cause.details || cause.message;
}
