import { isTerminal } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { modelMapKey } from '../../core/names/object-names';
import { parseModelMap } from '../../core/plan/model-map';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import { asFailure } from '../runtime/failure';
import type { FinalizeInput, FinalizeResult } from '../contract';
import type { LateDelivery, ReconcileActivities } from './types';

/** What a late delivery needs of the house. */
export interface DeliverLateDeps {
  readonly batches: Pick<BatchRepository, 'find'>;
  readonly store: Pick<ObjectStore, 'read'>;
  /** Finalization that writes its end with `recordLateDelivery`. */
  finalize(input: FinalizeInput): Promise<FinalizeResult>;
}

/**
 * The activity that delivers a batch whose finalization was given up (execution §4): its files are
 * made as they would have been, the status stays. Fails with `not_found`, `conflict` where the batch
 * has not ended, `plan_unreadable` where nothing is left to deliver from.
 */
export function createDeliverLate(deps: DeliverLateDeps): ReconcileActivities['deliverLate'] {
  return async ({ batchId }) => {
    try {
      return await deliverLate(deps, batchId);
    } catch (error) {
      throw asFailure(error);
    }
  };
}

async function deliverLate(deps: DeliverLateDeps, batchId: string): Promise<LateDelivery> {
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
  if (end.kind === 'holes')
    throw new NightshiftError('internal', 'holes in a batch that was stopped');
  return {
    status: end.status,
    outputFileId: end.outputFileId,
    errorFileId: end.errorFileId,
    delivered: true,
  };
}

/** The nonce of the plan. @throws plan_unreadable where there is none */
export async function readNonce(store: DeliverLateDeps['store'], batchId: string): Promise<string> {
  try {
    return parseModelMap(await store.read(modelMapKey(batchId))).nonce;
  } catch (error) {
    if (!isNightshiftError(error, 'object_missing')) throw error;
    const message = `${batchId} has no plan: its file was refused, or its journal has been removed`;
    throw new NightshiftError('plan_unreadable', message, { cause: error });
  }
}
