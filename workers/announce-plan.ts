import type {
  PlannedModel,
  PlannedOrInvalid,
  ProjectStatusInput,
  RowState,
} from '../activities/contract';
import { inProgress } from '../core/batch/in-progress';
import { within } from '../platform/within';

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
  const routed = result.models.filter(isRouted).map(({ model }) => model);
  const written = write(inProgress(result, routed)).catch(() => null);
  const row = await within(LONGEST_WAIT_MS, written, () => null);
  return row === null ? result : { ...result, row };
}

function isRouted({ undecided, delegate }: PlannedModel): boolean {
  return undecided !== true || delegate !== undefined;
}
