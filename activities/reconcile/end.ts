import { log } from '@temporalio/activity';
import type { BatchEnder } from '../../client/batch-ender';
import type { StopCause, TerminalStatus } from '../../core/batch/status';
import { isTerminal } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { OpenBatch } from '../../storage/postgres/batches/types';
import type { FinalizeInput, FinalizeResult } from '../contract';

/** What ending a batch without its workflow takes. */
export interface EndDeps {
  readonly batches: Pick<BatchRepository, 'claimCause' | 'recordUnfinalized'>;
  readonly ender: BatchEnder;
  /** Finalization as the workflow would have it done; throws when `check` does. */
  finalize(input: FinalizeInput, check: () => void): Promise<FinalizeResult>;
  /** The nonce of the plan. @throws plan_unreadable where there is none */
  nonceOf(batchId: string): Promise<string>;
  /** How long the files may take before the record is written without them. */
  readonly deliveryMs?: number;
}

const DELIVERY_MS = 2 * 60_000;

/**
 * The last resort: ends a batch whose workflow does not, with its files if they can be made now. If not,
 * the record is written with the counts that are known, and the files are delivered later. A batch of
 * which every line is settled and that nobody asked to end is never ended without files: it throws, and
 * is tried again. Null where the batch had ended meanwhile.
 */
export async function endWithoutWorkflow(
  deps: EndDeps,
  row: OpenBatch,
  { cause, check }: { cause: StopCause | null; check: () => void },
): Promise<TerminalStatus | null> {
  const claimed = await claim(deps, row.id, cause);
  if (claimed === 'ended') return null;
  const end = await deliver(deps, row.id, { cause: claimed, check });
  log.error('batch ended without its workflow', { batchId: row.id, ...end });
  await deps.ender.terminate(row.id).catch(() => undefined);
  return end.status;
}

async function claim(
  { batches }: EndDeps,
  batchId: string,
  cause: StopCause | null,
): Promise<StopCause | null | 'ended'> {
  if (cause === null) return null;
  const row = await batches.claimCause(batchId, cause);
  return !row.found || isTerminal(row.status) ? 'ended' : (row.stopCause ?? cause);
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
    const end = await inTime(deps, { batchId, nonce, cause }, check);
    if (end.kind === 'done') return { status: end.status, delivered: true };
    // Not every line was settled after all.
    const claimed = await claim(deps, batchId, 'expired');
    return await deliver(deps, batchId, {
      cause: claimed === 'ended' ? 'expired' : claimed,
      check,
    });
  } catch (error) {
    check();
    const isLasting = isNightshiftError(error) && !error.retryable;
    if (cause === null && !isLasting) throw error;
    log.warn('files not made at the end of a batch', { batchId, error });
    const row = await deps.batches.recordUnfinalized(batchId, cause);
    if (!isTerminal(row.status)) throw error;
    if (!isLasting) await deps.ender.deliverLater(batchId).catch(() => undefined);
    return { status: row.status, delivered: false };
  }
}

/** A store that hangs must not hold up all other batches: what it does later does no harm. */
async function inTime(
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
