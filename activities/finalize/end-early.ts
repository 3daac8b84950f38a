import type { Logger } from '../../platform/logger';
import type { BatchActivities, FinalizeInput, FinalizeResult } from '../contract';

/** What {@link endEarly} needs. */
export interface EndEarlyDeps {
  readonly steps: Pick<BatchActivities, 'finalize'>;
  readonly logger: Pick<Logger, 'warn'>;
}

/**
 * A batch so close to its deadline is ended by its workflow, which holds the deadline while files are made. Before
 * that, the workflow does not know that every line is settled.
 */
const NEAR_DEADLINE_MS = 60_000;

/**
 * Writes the files and the end of a batch within an activity that has answered its lines, before its workflow would. Null
 * if that fails, or is the business of the workflow. Never rejects.
 *
 * @param failure what to log if finalization fails
 */
export async function endEarly(
  { steps, logger }: EndEarlyDeps,
  deadlineMs: number,
  { input, failure }: { readonly input: FinalizeInput; readonly failure: string },
): Promise<FinalizeResult | null> {
  if (Date.now() > deadlineMs - NEAR_DEADLINE_MS) return null;
  try {
    const ended = await steps.finalize(input);
    return ended.kind === 'done' ? ended : null;
  } catch (error) {
    logger.warn({ err: error, batchId: input.batchId }, failure);
    return null;
  }
}
