/**
 * Priorities of permits: within a tenant, a lower number is served first. Across tenants they have little
 * effect, because a client chooses its completion window (docs/design/permits.md#priority).
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
 * Priority by slack. Less than twice the needed time left is urgent, more than eight times is relaxed.
 * Everything else is normal, also while the rate is unknown.
 */
export function priorityOf({ nowMs, deadlineMs, remainingMs }: SlackInput): Priority {
  if (remainingMs === null) return PRIORITY.normal;
  const leftMs = deadlineMs - nowMs;
  if (leftMs < 2 * remainingMs) return PRIORITY.urgent;
  return leftMs > 8 * remainingMs ? PRIORITY.relaxed : PRIORITY.normal;
}
