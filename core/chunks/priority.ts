/**
 * Priorities of permits: a lower number is served first within a tenant. Across tenants they hardly
 * count, because a client chooses its completion window (docs/design/execution.md#priority).
 */
export const PRIORITY = { urgent: 2, normal: 3, relaxed: 4 } as const;

/** One of {@link PRIORITY}. */
export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];

/** Time left and time needed. */
export interface SlackInput {
  readonly nowMs: number;
  /** Deadline of the batch, Unix ms. */
  readonly deadlineMs: number;
  /** What the rest of the model takes at its present rate, ms; null while the rate is unknown. */
  readonly remainingMs: number | null;
}

/**
 * Priority from slack, the time left against the time needed: less than twice is urgent, more than eight
 * times is relaxed, everything else and an unknown rate is normal.
 */
export function priorityOf({ nowMs, deadlineMs, remainingMs }: SlackInput): Priority {
  if (remainingMs === null) return PRIORITY.normal;
  const leftMs = deadlineMs - nowMs;
  if (leftMs < 2 * remainingMs) return PRIORITY.urgent;
  return leftMs > 8 * remainingMs ? PRIORITY.relaxed : PRIORITY.normal;
}
