import type { ErrorCode } from '../../core/errors';
import type { ClaimsMessage, LoanMessage } from '../../inference/loans/loan-messages';
import type { Config } from '../../platform/config';

/** From the parent of a worker to one of its processes. */
export type ToProcess =
  /** The first message: run with these settings, which are those of this process alone. */
  | { readonly kind: 'run'; readonly config: Config }
  /** Take no new work, finish requests in flight, and end. */
  | { readonly kind: 'drain' }
  | LoanMessage;

/** From a process of a worker to its parent. */
export type FromProcess =
  | { readonly kind: 'starting'; readonly reason: string }
  /** It works, and serves health and metrics at `url`. */
  | { readonly kind: 'ready'; readonly url: string }
  /** It could not start, or an invariant of it broke. It ends. */
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string }
  | ClaimsMessage;
