import { ApplicationFailure } from '@temporalio/activity';
import { isGatewayError } from '../core/errors';

/**
 * What an activity throws for `error`: a `GatewayError` becomes an `ApplicationFailure` whose `type` is
 * its code, retried only where the code is. Everything else, cancellation above all, passes unchanged.
 */
export function asFailure(error: unknown): unknown {
  if (!isGatewayError(error)) return error;
  return ApplicationFailure.create({
    message: error.message,
    type: error.code,
    nonRetryable: !error.retryable,
    cause: error,
  });
}
