import { isDropped, isDroppedAsExpired, type TryOutcome } from './outcome';
import { retryAfterMs } from './retry-after';

/** The retry settings of a gateway; durations in ms. */
export interface RetrySettings {
  readonly max_retries: number;
  readonly initial_backoff: number;
  readonly max_backoff: number;
}

/** Whether another try could end better: transport errors, timeouts, 408, 425, 429, 5xx. */
export function isRetryable(outcome: TryOutcome): boolean {
  if (outcome.kind === 'failure') {
    return outcome.reason !== 'aborted' && outcome.reason !== 'too_large';
  }
  if (isDroppedAsExpired(outcome)) return false;
  if (isDropped(outcome)) return true;
  const { status } = outcome;
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/**
 * A line's 429s that are not counted as tries; further ones are. A line that its server refuses each
 * time would otherwise come back until the deadline, and cut the limit for all the others.
 */
const MAX_UNCOUNTED = 20;

/** What decides whether an outcome is a try. */
export interface CountInput {
  readonly outcome: TryOutcome;
  /** The limit of the model when the request was sent; null if it is fixed. */
  readonly limit: number | null;
  /** 429s of this line that were not counted so far. */
  readonly refusals: number;
}

/**
 * What an outcome costs its line: a `try`; a `refusal`, if we sent more at once than the server takes,
 * which is not the line's fault; or `nothing`, if a gateway dropped it unserved. At a limit of 1 there
 * is nothing left to lower, so a 429 is a try.
 */
export function costOf({ outcome, limit, refusals }: CountInput): 'try' | 'refusal' | 'nothing' {
  if (isDropped(outcome)) return 'nothing';
  if (outcome.kind !== 'answer' || outcome.status !== 429 || isDroppedAsExpired(outcome)) {
    return 'try';
  }
  return limit !== null && limit > 1 && refusals < MAX_UNCOUNTED ? 'refusal' : 'try';
}

/** What decides the pause before a try. */
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

/**
 * `final`: the outcome is the line's result. `retry`: again at `atMs`. `expired`: it would be tried
 * again, but not before the deadline; the line stays unanswered.
 */
export type NextTry =
  | { readonly kind: 'final' }
  | { readonly kind: 'retry'; readonly atMs: number }
  | { readonly kind: 'expired' };

/** One try and its surroundings. */
export interface NextTryInput {
  readonly outcome: TryOutcome;
  /** Counted tries made so far, this one included. */
  readonly attempt: number;
  /** 429s that were not counted, this one included: they lengthen the pause all the same. */
  readonly refusals?: number;
  /** Whether this one is a try; one that is not never uses up the last try. */
  readonly counted?: boolean;
  readonly nowMs: number;
  /** End of the batch, Unix ms. */
  readonly deadlineMs: number;
  /** Uniform in [0, 1). */
  readonly random: number;
  readonly gateway: RetrySettings;
}

/** What follows a try: attempts = `max_retries` + 1, never past the deadline. */
export function nextTry(input: NextTryInput): NextTry {
  const { outcome, attempt, refusals = 0, counted = true, nowMs, deadlineMs, gateway } = input;
  if (!isRetryable(outcome)) return { kind: 'final' };
  if (counted && attempt > gateway.max_retries) return { kind: 'final' };
  const retryAfter = outcome.kind === 'answer' ? outcome.retryAfter : null;
  const pauses = Math.max(1, attempt + refusals);
  const { random } = input;
  const atMs = nowMs + backoffMs({ attempt: pauses, retryAfter, nowMs, random, gateway });
  return atMs < deadlineMs ? { kind: 'retry', atMs } : { kind: 'expired' };
}
