import { isTerminal } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { modelMapKey } from '../../core/names/object-names';
import { parseModelMap } from '../../core/plan/model-map';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { FinalizeInput, FinalizeResult } from '../contract';
import { asFailure } from '../runtime/failure';
import type { LateDelivery, ReconcileActivities } from './contract';

/** What {@link createDeliverLate} needs. */
export interface LateDeliveryDeps {
  readonly batches: Pick<BatchRepository, 'find'>;
  readonly store: Pick<ObjectStore, 'read'>;
  /** Finalization that records its end with `recordLateDelivery`; it sends its own heartbeats. */
  finalize(input: FinalizeInput): Promise<FinalizeResult>;
}

/**
 * The activity that makes the files of a batch that ended without them. They are the same as if they had
 * been made at the end, and the status does not change (docs/design/ends.md#late-delivery). Fails with
 * `not_found`; with `conflict` if the batch has not ended; with `plan_unreadable` if its plan is gone.
 */
export function createDeliverLate(deps: LateDeliveryDeps): ReconcileActivities['deliverLate'] {
  return async ({ batchId }) => {
    try {
      return await deliverLate(deps, batchId);
    } catch (error) {
      throw asFailure(error);
    }
  };
}

async function deliverLate(deps: LateDeliveryDeps, batchId: string): Promise<LateDelivery> {
  const batch = await deps.batches.find(batchId);
  if (batch === null) throw new NightshiftError('not_found', `there is no batch ${batchId}`);
  const { status, stopCause, outputFileId, errorFileId } = batch;
  if (!isTerminal(status)) {
    throw new NightshiftError('conflict', `${batchId} is ${status}: its workflow delivers it`);
  }
  if (outputFileId !== null || errorFileId !== null) {
    return { status, outputFileId, errorFileId, delivered: false };
  }
  const nonce = await readNonce(deps.store, batchId);
  const end = await deps.finalize({ batchId, nonce, cause: stopCause ?? 'failed' });
  if (end.kind === 'holes') {
    throw new NightshiftError('internal', 'a stopped batch has no unanswered ranges');
  }
  return {
    status: end.status,
    outputFileId: end.outputFileId,
    errorFileId: end.errorFileId,
    delivered: true,
  };
}

/** The nonce of the plan. @throws plan_unreadable if there is no plan, object_store_failed */
export async function readNonce(
  store: LateDeliveryDeps['store'],
  batchId: string,
): Promise<string> {
  try {
    return parseModelMap(await store.read(modelMapKey(batchId))).nonce;
  } catch (error) {
    if (!isNightshiftError(error, 'object_missing')) throw error;
    const message = `${batchId} has no plan: its file was refused, or its journal has been removed`;
    throw new NightshiftError('plan_unreadable', message, { cause: error });
  }
}
