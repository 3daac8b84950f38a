/**
 * The span below which the work on a batch is traced, as its row keeps it. The names of the fields are
 * stored and never change (docs/design/tracing.md#trace-of-a-batch).
 */
export interface TraceContext {
  /** W3C `traceparent` of the span of the create call. */
  readonly traceparent: string;
  /** W3C `tracestate` of the create call, if it had one. */
  readonly tracestate?: string;
  /** When the batch was created, Unix ms. The row has whole seconds only. */
  readonly startedAtMs: number;
}
