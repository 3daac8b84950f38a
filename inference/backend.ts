import type { AttemptFailure } from '../platform/http-client/attempt';

/**
 * A gateway as senders see it: one try of one request, with a complete answer. Callers handle retries,
 * permits and the circuit breaker.
 */
export interface Backend {
  /**
   * Sends exactly `request.body` and resolves with the whole answer or with the reason why there is
   * none; it never rejects. Aborting `signal` resolves with `aborted`.
   */
  send(request: BackendRequest, signal: AbortSignal): Promise<BackendOutcome>;
  /** Whether the gateway reports dispatches, so that requests without a report are held in its queue. */
  readonly reportsDispatch: boolean;
  /** Waits for requests in flight, then closes all connections. */
  close(): Promise<void>;
}

/** One try of one line. */
export interface BackendRequest {
  /** Path of the endpoint, such as `/v1/chat/completions`; appended to the gateway's base URL. */
  readonly path: string;
  /** Bytes of the line's `body`, unchanged. */
  readonly body: Uint8Array;
  /** The line's id, sent as `x-request-id`. */
  readonly requestId: string;
  /** End of the batch, Unix ms; the time left until then is sent as `x-slo-ttft-ms`. */
  readonly deadlineMs: number;
  /** Further headers (pass-through, fairness id), lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Called with the size of each piece of the answer while it is read. A promise delays further reading
   * until it resolves.
   */
  readonly onBytes?: (byteLength: number) => Promise<void> | undefined;
  /** Called when there is a connection, before the first byte. False ends the try as `unsent`. */
  readonly maySend?: () => boolean;
  /**
   * When it aborts, the request ends as `held` if the gateway still holds it
   * (docs/design/held-requests.md#dispatch-reports). A dispatched request goes on.
   */
  readonly leaving?: AbortSignal;
}

/** The end of one try: an answer of any status, or none. */
export type BackendOutcome = BackendAnswer | BackendFailure;

/** A complete answer of any status, including redirects. */
export interface BackendAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Whole body after content decoding. */
  readonly body: Buffer;
  readonly retryAfter: string | null;
  /** `x-llm-d-request-dropped-reason`, lower-case, or null. */
  readonly droppedReason: string | null;
  /** `x-nightshift-dropped`, lower-case: the gateway dropped the request unserved; or null. */
  readonly dropped: string | null;
  /** Time in the queue of the gateway (`Server-Timing`), ms; null if the answer does not say it. */
  readonly queueMs: number | null;
  /** `x-request-id` of the answer, or null. */
  readonly requestId: string | null;
}

/** No complete answer; the reason says whether the server may have the request. */
export interface BackendFailure extends Omit<AttemptFailure, 'reason'> {
  readonly kind: 'failure';
  /** `held`: it was closed or timed out while the gateway held it, so no model server has seen it. */
  readonly reason: AttemptFailure['reason'] | 'held';
}
