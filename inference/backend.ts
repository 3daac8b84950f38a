import type { AttemptFailure } from '../platform/http-client/attempt';
import type { StreamedBody } from '../platform/http-client/outbound-body';

/**
 * A gateway as senders see it: one try of one request, with a complete answer. Callers handle retries,
 * permits and the circuit breaker.
 */
export interface Backend {
  /**
   * Sends exactly `request.body`, and tells `request.onSettled` the end: the whole answer, or the reason why there is
   * none. That may be before it returns, for example if the backend is closing. It never throws.
   */
  send(request: BackendRequest): SentRequest;
  /** Opens connections, because so many requests will follow soon. They report what goes wrong. Never throws. */
  prepare(requests: number): void;
  /** Whether the gateway reports dispatches, so that requests without a report are held in its queue. */
  readonly reportsDispatch: boolean;
  /** Waits for requests in flight, then closes all connections. */
  close(): Promise<void>;
}

/** A request that was handed to a backend. Its methods do nothing once it has ended. */
export interface SentRequest {
  /** Ends it as `aborted`. */
  abort(): void;
  /**
   * The chunk of its line leaves: ends it as `held` if the gateway still holds it
   * (docs/design/held-requests.md#dispatch-reports). A dispatched request goes on.
   */
  closeIfHeld(): void;
}

/**
 * One try of one line. The sender implements it as one object, because promises, closures and listeners for each
 * request were a quarter of the garbage of a line.
 */
export interface BackendRequest {
  /** Called exactly once, with the end of the request. It must not throw. */
  onSettled(outcome: BackendOutcome): void;
  /** Path of the endpoint, such as `/v1/chat/completions`; appended to the gateway's base URL. */
  readonly path: string;
  /** Bytes of the line's `body`, unchanged; or a form. If a form cannot be read, the try ends as `unsent`. */
  readonly body: Uint8Array | RequestForm;
  /** `application/json` by default. */
  readonly accept?: string | undefined;
  /** Time limit from `send` to the last byte of the answer, ms; `request_timeout` of the gateway by default. */
  readonly timeoutMs?: number | undefined;
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
  onBytes?(byteLength: number): Promise<void> | undefined;
  /**
   * Called when there is a connection, before the first byte; for a form, before each piece. False ends the try as
   * `unsent`: no server acts on half a form.
   */
  maySend?(): boolean;
  /**
   * Whether the chunk of the line leaves and waits for no held request. Then a request that the gateway would only hold
   * is not sent, and a report gives it no further time.
   */
  isLeaving?(): boolean;
}

/** A body of a known length that is read while it is sent. */
export interface RequestForm extends StreamedBody {
  readonly bytes: number;
  readonly contentType: string;
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
  /** `x-should-retry: false`: the server says that another try would not end better. */
  readonly isFinal: boolean;
  readonly contentType: string | null;
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
