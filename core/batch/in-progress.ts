/** What a plan says about all requests of its batch. */
interface PlannedRequests {
  readonly lineCount: number;
  readonly unroutedLines: number;
  readonly models: readonly unknown[];
}

/**
 * The phase `in_progress` of a batch with this plan, as its row shows it. `model` is null unless one model has all requests.
 *
 * @param routed models that can be sent
 */
export function inProgress(plan: PlannedRequests, routed: readonly string[]) {
  const { lineCount, unroutedLines, models } = plan;
  const areAllRouted = unroutedLines === 0 && routed.length === models.length;
  return {
    status: 'in_progress' as const,
    total: lineCount,
    model: routed.length === 1 && areAllRouted ? (routed[0] ?? null) : null,
    models: routed,
  };
}
