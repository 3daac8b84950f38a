import type { PlannedModel, PlannedOrInvalid, ProjectStatusInput, RowState } from '../contract';

/** Writes a phase into the row of a batch. */
export type WritePhase = (phase: Omit<ProjectStatusInput, 'batchId'>) => Promise<RowState>;

/** The first request of a batch must not wait for PostgreSQL. */
const LONGEST_WAIT_MS = 250;

/**
 * Writes `in_progress` into the row of a batch that has a plan, and adds what the row says then. If that fails or takes
 * long, the result lacks it, and the workflow writes the phase (docs/design/batch-path.md#execution). Never rejects.
 */
export async function announcePlan(
  result: PlannedOrInvalid,
  write: WritePhase,
): Promise<PlannedOrInvalid> {
  if (result.kind === 'invalid') return result;
  const row = await inTime(write(inProgress(result)));
  return row === null ? result : { ...result, row };
}

function inProgress({ lineCount, unroutedLines, models }: PlannedOrInvalid & { kind: 'planned' }) {
  const routed = models.filter(isRouted).map(({ model }) => model);
  const areAllRouted = unroutedLines === 0 && routed.length === models.length;
  return {
    status: 'in_progress' as const,
    total: lineCount,
    model: routed.length === 1 && areAllRouted ? (routed[0] ?? null) : null,
    models: routed,
  };
}

function isRouted({ undecided, delegate }: PlannedModel): boolean {
  return undecided !== true || delegate !== undefined;
}

/** Null if it takes longer, or fails. */
async function inTime(written: Promise<RowState>): Promise<RowState | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), LONGEST_WAIT_MS);
  });
  const row = await Promise.race([written.catch(() => null), late]);
  clearTimeout(timer);
  return row;
}
