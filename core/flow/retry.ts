import { isDroppedAsExpired, type TryOutcome } from './outcome';

/** The retry settings of a gateway; durations in ms. */
export interface RetrySettings {
  readonly max_retries: number;
  readonly initial_backoff: number;
  readonly max_backoff: number;
}

/** A `Retry-After` beyond this counts as this much (execution §3 "Retries"). */
export const MAX_RETRY_AFTER_MS = 300_000;

/** Whether another try could end better: transport errors, timeouts, 408, 425, 429, 5xx. */
export function isRetryable(outcome: TryOutcome): boolean {
  if (outcome.kind === 'failure') {
    return outcome.reason !== 'aborted' && outcome.reason !== 'too_large';
  }
  if (isDroppedAsExpired(outcome)) return false;
  const { status } = outcome;
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** What decides the pause before a try. */
export interface BackoffInput {
  /** Tries made so far, at least 1. */
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

const HTTP_DATE = /^[A-Z][a-z]+,? .+ GMT$/;

/** Ms that a `Retry-After` asks for, between 0 and 5 min; null where absent or malformed. */
export function retryAfterMs(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1_000, MAX_RETRY_AFTER_MS);
  const dateMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(dateMs)) return null;
  return Math.min(Math.max(dateMs - nowMs, 0), MAX_RETRY_AFTER_MS);
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
  /** Tries made so far, this one included; at least 1. */
  readonly attempt: number;
  readonly nowMs: number;
  /** End of the batch, Unix ms. */
  readonly deadlineMs: number;
  /** Uniform in [0, 1). */
  readonly random: number;
  readonly gateway: RetrySettings;
}

/** What follows a try (execution §3 "Retries"): attempts = `max_retries` + 1, never past the deadline. */
export function nextTry(input: NextTryInput): NextTry {
  const { outcome, attempt, nowMs, deadlineMs, random, gateway } = input;
  if (!isRetryable(outcome) || attempt > gateway.max_retries) return { kind: 'final' };
  const retryAfter = outcome.kind === 'answer' ? outcome.retryAfter : null;
  const atMs = nowMs + backoffMs({ attempt, retryAfter, nowMs, random, gateway });
  return atMs < deadlineMs ? { kind: 'retry', atMs } : { kind: 'expired' };
}
