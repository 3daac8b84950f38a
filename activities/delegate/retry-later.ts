import { ApplicationFailure } from '@temporalio/activity';
import { failureText } from '../../core/batch/temporal-bounds';

const TYPE = 'provider_wait';

/**
 * The failure of an attempt that has to wait. The server tries again after `afterMs`, without an event in the
 * history, and the Temporal UI shows `message` meanwhile. Benign: the SDK neither logs nor counts it as an error.
 */
export function retryLater(message: string, afterMs: number, details?: object): ApplicationFailure {
  return ApplicationFailure.create({
    message: failureText(message),
    type: TYPE,
    nextRetryDelay: Math.max(1, Math.round(afterMs)),
    category: 'BENIGN',
    ...(details === undefined ? {} : { details: [details] }),
  });
}

/** Whether a failure is one of {@link retryLater}. */
export function isWait(error: unknown): error is ApplicationFailure {
  return error instanceof ApplicationFailure && error.type === TYPE;
}

/** `afterMs`, but at most until `untilMs`, so that an attempt begins when it has to decide. */
export function notBeyond(afterMs: number, untilMs: number, nowMs: number): number {
  return untilMs > nowMs ? Math.min(afterMs, untilMs - nowMs) : afterMs;
}
