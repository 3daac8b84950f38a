/**
 * Why an attempt at a chunk returned (docs/design/execution.md#exit-reasons). The values are stored in
 * workflow histories and shown to operators, so they keep their original spelling.
 */
export const EXIT_REASON = {
  /** Every line of the chunk is answered. */
  done: 'done',
  /** The time slice has ended. */
  timeSlice: 'box',
  /** The process shuts down. */
  drain: 'drain',
  /** The batch has a stop cause, or its deadline has passed. */
  stopped: 'stopped',
  /** Another attempt holds the range, or Temporal no longer wants this one. */
  fenced: 'fenced',
  /** The process was frozen and cannot confirm in time that it still holds the range. */
  unconfirmed: 'unheard',
  /** A gateway held all requests until the chunk had to leave. */
  held: 'held',
  /** No first permit in time. */
  noPermit: 'no_permit',
  /** The circuit breaker is open. */
  breakerOpen: 'breaker_open',
  /** This process has no gateway for the model. */
  unrouted: 'unrouted',
  /** The batch has ended. */
  rowTerminal: 'row_terminal',
} as const;

/** One of {@link EXIT_REASON}. */
export type ExitReason = (typeof EXIT_REASON)[keyof typeof EXIT_REASON];
