import type { LoanClaim } from '../../core/dispatch/permits/loan-shares';

/** From a process that borrows permits: what it has and wants of each limit that it uses. */
export interface ClaimsMessage {
  readonly kind: 'claims';
  readonly limits: readonly LimitClaims[];
}

/** What one process has and wants of one limit. */
export interface LimitClaims {
  readonly name: string;
  /** Permits of all processes together. */
  readonly limit: number;
  /** Number of the latest {@link LoanMessage} of this limit that it obeys; 0 before the first one. */
  readonly seen: number;
  /** Permits that it may still use: its loan, or what it holds if that is more. */
  readonly kept: number;
  /** Permits that it can use at most; null without such a bound. */
  readonly most: number | null;
  readonly claims: readonly LoanClaim[];
}

/** To a process: from now on it may hold `permits` of the limit, and sends nothing while it holds more. */
export interface LoanMessage {
  readonly kind: 'loan';
  readonly name: string;
  readonly permits: number;
  /** Counts all messages of the parent, so that no two are mistaken for each other. */
  readonly number: number;
}
