import type { DelegatedPart } from '../activities/delegate/contract';
import type { PlannedDelegate } from '../activities/delegate/planned-delegate';
import type { ResumedModel } from './contract';
import type { LaneContext } from './lane-context';

/** A model of a plan that goes through a provider. */
export type DelegatedPlan = ResumedModel & { readonly delegate: PlannedDelegate };

/** What every activity of a delegated model is told. */
export function delegatedPart(
  { batchId, planNonce, opened }: LaneContext,
  { model, safe, delegate }: DelegatedPlan,
): DelegatedPart {
  const { provider, giveUpAtMs, harvestGraceMs } = delegate;
  return {
    ...{ batchId, planNonce, model, safe, provider, giveUpAtMs, harvestGraceMs },
    tenant: opened.tenant,
    endpoint: opened.endpoint,
    inputKey: opened.inputKey ?? '',
    deadlineMs: opened.expiresAtMs,
  };
}
