/**
 * The way out to a model server: one try of one request. Retries, permits and the breaker live
 * above it.
 */
export interface Backend {
  /**
   * Sends exactly `request.body` and resolves with the whole answer or with the reason why there is
   * none; it never rejects. Aborting `signal` resolves with `aborted`.
   */
  send(request: BackendRequest, signal: AbortSignal): Promise<BackendOutcome>;
  /** Waits for what runs, then closes all connections. */
  close(): Promise<void>;
}

/** One try of one line. */
export interface BackendRequest {
  /** Path of the endpoint, such as `/v1/chat/completions`; appended to the gateway's base URL. */
  readonly path: string;
  /** Bytes of the line's `body`, untouched. */
  readonly body: Uint8Array;
  /** The line's id, sent as `x-request-id`. */
  readonly requestId: string;
  /** End of the batch in Unix ms; sent as `x-slo-ttft-ms` = what is left of it. */
  readonly deadlineMs: number;
  /** Further headers (pass-through, fairness id), lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Told about growth of the answer while it is read (bytes of this chunk); may delay further reading. */
  readonly onBytes?: (byteLength: number) => Promise<void> | undefined;
  /** Asked when there is a connection, before the first byte: on false the outcome is `unsent`. */
  readonly mayLeave?: () => boolean;
}

/** The end of one try: an answer of any status, or none. */
export type BackendOutcome = BackendAnswer | BackendFailure;

/** A complete answer, whatever its status; redirects are answers too. */
export interface BackendAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Whole body after content decoding. */
  readonly body: Buffer;
  readonly retryAfter: string | null;
  /** `x-llm-d-request-dropped-reason`, lower-case, or null. */
  readonly droppedReason: string | null;
  /** `x-nightshift-dropped`, lower-case: the gateway gave the request up unserved; or null. */
  readonly dropped: string | null;
  /** `x-request-id` of the answer, or null. */
  readonly requestId: string | null;
}

/** No complete answer: `connect` and `unsent` mean that nothing was sent. */
export interface BackendFailure {
  readonly kind: 'failure';
  readonly reason: 'connect' | 'connection' | 'timeout' | 'too_large' | 'aborted' | 'unsent';
  readonly message: string;
}
