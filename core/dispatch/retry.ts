import { isDropped, isExpiredInQueue, isUnserved, type TryOutcome } from './outcome';
import { retryAfterMs } from './retry-after';

/** The retry settings of a gateway; durations in ms. */
export interface RetrySettings {
  readonly max_retries: number;
  readonly initial_backoff: number;
  readonly max_backoff: number;
}

/**
 * Whether another try could end better: transport errors, timeouts, 408, 425, 429, 5xx, and every request
 * that was given up unserved (docs/design/execution.md#retries), unless the server says that it could not. A reply that says that the request's
 * deadline has passed is final only if it has.
 */
export function isRetryable(outcome: TryOutcome, { isPastDeadline }: DeadlineState): boolean {
  if (outcome.kind === 'failure') {
    return outcome.reason !== 'aborted' && outcome.reason !== 'too_large';
  }
  if (isDropped(outcome)) return true;
  if (isExpiredInQueue(outcome)) return !isPastDeadline;
  if (outcome.isFinal === true) return false;
  const { status } = outcome;
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** What a rule needs of the batch's deadline. */
export interface DeadlineState {
  readonly isPastDeadline: boolean;
}

/**
 * How many 429s of a line are not counted as tries. Without this bound, a line that its server always
 * refuses would come back until the deadline and keep cutting the limit for all others.
 */
const MAX_UNCOUNTED = 20;

/** An outcome, and the state that decides whether it counts as a try. */
export interface CountInput {
  readonly outcome: TryOutcome;
  /** The limit of the model when the request was sent; null if it is fixed. */
  readonly limit: number | null;
  /** 429s of this line so far that were not counted. */
  readonly refusals: number;
}

/**
 * What an outcome costs its line. `refusal`: a 429 because we sent more at once than the server takes,
 * which is not the line's fault. `nothing`: the gateway gave the request up unserved. `try`: everything
 * else, including a 429 at a limit of 1, where we cannot send less (docs/design/permits.md#refusals).
 */
export function costOf({ outcome, limit, refusals }: CountInput): 'try' | 'refusal' | 'nothing' {
  if (isUnserved(outcome)) return 'nothing';
  if (outcome.kind !== 'answer' || outcome.status !== 429) return 'try';
  return limit !== null && limit > 1 && refusals < MAX_UNCOUNTED ? 'refusal' : 'try';
}

/** The values from which the pause before the next try is computed. */
export interface BackoffInput {
  /** Tries and refusals so far, at least 1. */
  readonly attempt: number;
  /** `Retry-After` of the answer, seconds or HTTP date, or null. */
  readonly retryAfter: string | null;
  readonly nowMs: number;
  /** Uniform in [0, 1). */
  readonly random: number;
  readonly gateway: Pick<RetrySettings, 'initial_backoff' | 'max_backoff'>;
}

/** Pause before the next try, ms: exponential with full jitter, never shorter than `Retry-After`. */
export function backoffMs({ attempt, retryAfter, nowMs, random, gateway }: BackoffInput): number {
  const doublings = Math.min(Math.max(attempt - 1, 0), 52);
  const ceilingMs = Math.min(gateway.max_backoff, gateway.initial_backoff * 2 ** doublings);
  return Math.max(Math.round(ceilingMs * random), retryAfterMs(retryAfter, nowMs) ?? 0);
}

/** A gateway that names at least this pause is obeyed to the letter; less would be no pause at all. */
const MIN_OBEYED_PAUSE_MS = 1_000;

/**
 * Pause after a request that was given up unserved, ms: the `Retry-After` of the gateway, which knows how
 * long its queue is. Without one of a second or more, the backoff of `attempt`, so that no loop is tight.
 */
function unservedPauseMs(input: BackoffInput): number {
  const namedMs = retryAfterMs(input.retryAfter, input.nowMs) ?? 0;
  return namedMs >= MIN_OBEYED_PAUSE_MS ? namedMs : backoffMs(input);
}

/**
 * `final`: the outcome is the line's result. `retry`: the next try is at `atMs`. `expired`: the next try
 * would be after the deadline, so the line stays unanswered.
 */
export type NextTry =
  | { readonly kind: 'final' }
  | { readonly kind: 'retry'; readonly atMs: number }
  | { readonly kind: 'expired' };

/** One try, and the state that decides about the next one. */
export interface NextTryInput {
  readonly outcome: TryOutcome;
  /** Counted tries made so far, this one included. */
  readonly attempt: number;
  /** 429s that were not counted, this one included: they lengthen the pause too. */
  readonly refusals?: number;
  /** Tries in a row that were given up unserved, this one included. They lengthen the pause too. */
  readonly unserved?: number;
  /** Whether this outcome counts as a try; otherwise it cannot use up the last try. */
  readonly counted?: boolean;
  readonly nowMs: number;
  /** End of the batch, Unix ms. */
  readonly deadlineMs: number;
  /** Uniform in [0, 1). */
  readonly random: number;
  readonly gateway: RetrySettings;
}

/** Decides what follows a try. A line has `max_retries` + 1 tries, none of them after the deadline. */
export function nextTry(input: NextTryInput): NextTry {
  const { outcome, attempt, refusals = 0, unserved = 0, counted = true } = input;
  const { nowMs, deadlineMs, random, gateway } = input;
  if (!isRetryable(outcome, { isPastDeadline: nowMs >= deadlineMs })) return { kind: 'final' };
  if (counted && attempt > gateway.max_retries) return { kind: 'final' };
  const retryAfter = outcome.kind === 'answer' ? outcome.retryAfter : null;
  const pauses = Math.max(1, isUnserved(outcome) ? unserved : attempt + refusals);
  const pauseMs = isUnserved(outcome) ? unservedPauseMs : backoffMs;
  const atMs = nowMs + pauseMs({ attempt: pauses, retryAfter, nowMs, random, gateway });
  return atMs < deadlineMs ? { kind: 'retry', atMs } : { kind: 'expired' };
}
