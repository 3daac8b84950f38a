import { inspect } from 'node:util';
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';
import { isNightshiftError } from '../../core/errors';

/**
 * What an activity throws for `error`: a `NightshiftError` becomes an `ApplicationFailure` whose `type` is
 * its code, retried only where the code is. Everything else, cancellation above all, passes unchanged.
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
 * The same activities with failures that Temporal can take: messages of errors quote what clients sent,
 * and a failure over the server's limit is not retried, whatever caused it.
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

/** Causes of causes tell nothing new below this. */
const CAUSES = 4;

/** The error itself if all of it fits, else a copy without what is too much. */
export function boundedFailure(error: unknown, causes = CAUSES): unknown {
  if (error === undefined || isCancellation(error)) return error;
  if (!(error instanceof Error)) return failureText(inspect(error));
  const message = failureText(error.message);
  const cause = causes === 0 ? undefined : boundedFailure(error.cause, causes - 1);
  if (message === error.message && cause === error.cause) return error;
  return shortened(error, message, cause);
}

/** The SDK tells a cancellation by these; their texts are its own. */
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
  const copy = new Error(message, { cause });
  copy.name = error.name;
  // The stack begins with the message.
  copy.stack = failureText((error.stack ?? '').replace(error.message, () => message));
  return copy;
}
