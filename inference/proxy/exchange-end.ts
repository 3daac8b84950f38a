import type { Usage } from '../../core/batch/counts';

/**
 * How the exchange with a backend ended.
 *
 * | outcome         | what happened                                                 | may the backend have the request? |
 * |-----------------|---------------------------------------------------------------|-----------------------------------|
 * | `answered`      | the complete answer, of any status, was passed on             | yes                               |
 * | `declined`      | `onHead` refused the answer, so nothing of it was passed on   | yes                               |
 * | `unreachable`   | there was no connection, so nothing was sent                  | no                                |
 * | `lost`          | the connection broke, or the answer is not HTTP               | yes                               |
 * | `timeout`       | `requestTimeoutMs` or `stallTimeoutMs` passed                 | yes                               |
 * | `client_closed` | the client closed its connection first                        | yes                               |
 * | `aborted`       | the caller aborted                                            | yes                               |
 */
export type ExchangeOutcome =
  'answered' | 'declined' | 'unreachable' | 'lost' | 'timeout' | 'client_closed' | 'aborted';

/** The end of one exchange with one backend. */
export interface ExchangeEnd {
  readonly outcome: ExchangeOutcome;
  /** Status of the backend's answer; null if none arrived. */
  readonly status: number | null;
  /** Whether the client has the head of an answer. If not, the caller may still write its own. */
  readonly isHeadSent: boolean;
  /** Whether the connection was refused: nothing listens there. */
  readonly isRefused: boolean;
  /** Bytes of the answer's body that arrived. */
  readonly bytes: number;
  /** From the start to the first byte of the body, or to the end of an empty answer, ms; null before. */
  readonly ttfbMs: number | null;
  /** The answer's `usage`; null if it has none that could be read, as always if it is not complete. */
  readonly usage: Usage | null;
  /** Events of an event stream that arrived, without `[DONE]`; 0 for other answers. */
  readonly events: number;
  /** Why there is no complete answer, for logs; null if there is one. */
  readonly message: string | null;
}
