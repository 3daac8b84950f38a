import type { BackendOutcome } from '../../inference/backend';
import type { LoadReport } from '../../inference/dispatcher';
import type { EncodedFrame } from './answer-frames';

/** How one try of one line ended. */
export type TryResult =
  | {
      readonly kind: 'answered';
      readonly frame: EncodedFrame;
      /** Time in the queue of a gateway, ms; 0 if the gateway does not say it. */
      readonly queueMs: number;
    }
  | { readonly kind: 'retry'; readonly atMs: number }
  /** Aborted, or not retried because of a stop: the end of the batch gives the line its error code. */
  | { readonly kind: 'unanswered' };

/** What judges of a try ask about it. */
export interface TryHow {
  /** The try is the breaker's probe: it does not count if the gateway is still away. */
  readonly probe: boolean;
  /** Receives when the request is sent and what its reply says about the load of the server. */
  readonly load: LoadReport;
  /** Asked when the outcome is known: during a stop nothing is retried. */
  stopping(): boolean;
  /** Lines of the model that may still lack an answer. */
  openLines(): number;
}

/** One try that was sent, and how it ended. */
export interface SentTry {
  readonly outcome: BackendOutcome;
  readonly how: TryHow;
  /** When it was sent, Unix ms. */
  readonly sentMs: number;
  /** The model's limit when it was sent; null if the limit is fixed. */
  readonly limit: number | null;
}
