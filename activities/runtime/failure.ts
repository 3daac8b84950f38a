import { inspect } from 'node:util';
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';
import { isNightshiftError, NightshiftError } from '../../core/errors';

/**
 * What an activity throws for `error`. A `NightshiftError` becomes an `ApplicationFailure` whose `type` is
 * its code, and which Temporal retries only if the error is retryable. Everything else passes unchanged,
 * above all cancellations (docs/design/temporal.md#failures).
 */
export function asFailure(error: unknown): unknown {
  if (!isNightshiftError(error)) return error;
  return ApplicationFailure.create({
    message: error.message,
    type: error.code,
    nonRetryable: !error.retryable,
    cause: error,
  });
}

type Activity = (input: never) => Promise<unknown>;

/**
 * Wraps activities so that their failures are small enough for Temporal. Messages may quote what clients
 * sent, and the server never retries an activity whose failure exceeds its size limit.
 */
export function withBoundedFailures<A extends Readonly<Record<keyof A, Activity>>>(
  activities: A,
): A {
  const wrapped = Object.entries<Activity>(activities).map(([name, activity]) => [
    name,
    async (input: never) => {
      try {
        return await activity(input);
      } catch (error) {
        throw boundedFailure(error);
      }
    },
  ]);
  return Object.fromEntries(wrapped) as A;
}

/** Depth of the chain of causes that is kept. */
const MAX_CAUSES = 4;

/** The error itself if it fits, else a copy with shortened texts and fewer causes. */
function boundedFailure(error: unknown, causes = MAX_CAUSES): unknown {
  if (error === undefined || isCancellation(error)) return error;
  if (!(error instanceof Error)) return failureText(inspect(error));
  const message = failureText(error.message);
  const cause = causes === 0 ? undefined : boundedFailure(error.cause, causes - 1);
  if (message === error.message && cause === error.cause) return error;
  return shortened(error, message, cause);
}

/** Cancellations pass unchanged, because the SDK recognises them by class or name. Their texts are short. */
function isCancellation(error: unknown): boolean {
  return (
    error instanceof CancelledFailure || (error instanceof Error && error.name === 'AbortError')
  );
}

function shortened(error: Error, message: string, cause: unknown): Error {
  if (error instanceof ApplicationFailure) {
    const { type, nonRetryable, details } = error;
    return ApplicationFailure.create({
      message,
      ...(type == null ? {} : { type }),
      nonRetryable: nonRetryable ?? false,
      details: details ?? [],
      ...(cause instanceof Error ? { cause } : {}),
    });
  }
  const copy = isNightshiftError(error)
    ? new NightshiftError(error.code, message, { cause })
    : new Error(message, { cause });
  copy.name = error.name;
  // The stack begins with the message.
  copy.stack = failureText((error.stack ?? '').replace(error.message, () => message));
  return copy;
}
