/**
 * Priorities of permits: lower is served first within a tenant. Across tenants they count for little:
 * a completion window is the client's to choose.
 */
export const PRIORITY = { urgent: 2, normal: 3, relaxed: 4 } as const;

export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];

/** Time left and time needed. */
export interface SlackInput {
  readonly nowMs: number;
  /** End of the batch, Unix ms. */
  readonly deadlineMs: number;
  /** What the rest of the batch is expected to take at its present rate, ms; null while unknown. */
  readonly remainingMs: number | null;
}

/**
 * Priority from slack: time left against the time needed. Below 2 × urgent, above 8 × relaxed,
 * anything between or unknown normal.
 */
export function priorityOf({ nowMs, deadlineMs, remainingMs }: SlackInput): Priority {
  if (remainingMs === null) return PRIORITY.normal;
  const leftMs = deadlineMs - nowMs;
  if (leftMs < 2 * remainingMs) return PRIORITY.urgent;
  return leftMs > 8 * remainingMs ? PRIORITY.relaxed : PRIORITY.normal;
}
