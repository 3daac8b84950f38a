import { log } from '@temporalio/activity';
import type { StopCause, TerminalStatus } from '../../core/batch/status';
import { isTerminal } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { FinalizeInput, FinalizeResult } from '../contract';
import type { BatchWorkflows } from './ports';

/** What {@link endWithoutWorkflow} needs. */
export interface EndDeps {
  readonly batches: Pick<BatchRepository, 'claimCause' | 'recordUnfinalized'>;
  readonly workflows: Pick<BatchWorkflows, 'terminate' | 'deliverLater'>;
  /** Finalization, as in the workflow's activity. Throws what `check` throws. */
  finalize(input: FinalizeInput, check: () => void): Promise<FinalizeResult>;
  /** The nonce of the plan. @throws plan_unreadable if there is no plan */
  nonceOf(batchId: string): Promise<string>;
  /** How long the files may take before the record is written without them, ms. */
  readonly deliveryMs?: number;
}

const DELIVERY_MS = 2 * 60_000;

/**
 * Ends a batch, with its files if they can be made now. If not, the record is written with the counts that
 * are known, and the files are delivered late. A batch without a cause, whose lines are all settled, is not
 * ended without its files because of a temporary error: it throws, and the next cycle tries again. Returns
 * null if the batch has ended meanwhile.
 */
export async function endWithoutWorkflow(
  deps: EndDeps,
  batchId: string,
  { cause, check }: { cause: StopCause | null; check: () => void },
): Promise<TerminalStatus | null> {
  const claimed = await claim(deps, batchId, cause);
  if (claimed === 'ended') return null;
  const end = await deliver(deps, batchId, { cause: claimed, check });
  log.error('batch ended without its workflow', { batchId, ...end });
  await deps.workflows.terminate(batchId).catch(() => undefined);
  return end.status;
}

async function claim(
  { batches }: EndDeps,
  batchId: string,
  cause: StopCause | null,
): Promise<StopCause | null | 'ended'> {
  if (cause === null) return null;
  const state = await batches.claimCause(batchId, cause);
  return !state.found || isTerminal(state.status) ? 'ended' : (state.stopCause ?? cause);
}

interface Ended {
  readonly status: TerminalStatus;
  readonly delivered: boolean;
}

async function deliver(
  deps: EndDeps,
  batchId: string,
  { cause, check }: { cause: StopCause | null; check: () => void },
): Promise<Ended> {
  try {
    const nonce = cause === null ? await deps.nonceOf(batchId) : null;
    const end = await finalizeInTime(deps, { batchId, nonce, cause }, check);
    if (end.kind === 'done') return { status: end.status, delivered: true };
    // Some lines are not settled after all, for example because a restored store lacks their seals.
    const claimed = await claim(deps, batchId, 'expired');
    return await deliver(deps, batchId, {
      cause: claimed === 'ended' ? 'expired' : claimed,
      check,
    });
  } catch (error) {
    check();
    const isPermanent = isNightshiftError(error) && !error.retryable;
    if (cause === null && !isPermanent) throw error;
    log.warn('result files could not be made when the batch ended', { batchId, error });
    const state = await deps.batches.recordUnfinalized(batchId, cause);
    if (!isTerminal(state.status)) throw error;
    if (!isPermanent) await deps.workflows.deliverLater(batchId).catch(() => undefined);
    return { status: state.status, delivered: false };
  }
}

/**
 * Limits the time of one finalization, because a store that hangs must not hold up all other batches. A
 * finalization that was given up may go on, because all its writes are idempotent.
 */
async function finalizeInTime(
  { finalize, deliveryMs = DELIVERY_MS }: EndDeps,
  input: FinalizeInput,
  check: () => void,
): Promise<FinalizeResult> {
  const late = () => new NightshiftError('unavailable', 'making the result files takes too long');
  const endMs = performance.now() + deliveryMs;
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), deliveryMs);
  });
  const done = finalize(input, () => {
    check();
    if (performance.now() > endMs) throw late();
  });
  done.catch(() => undefined);
  try {
    return await Promise.race([done, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
