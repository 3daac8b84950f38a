import { missingAs, NightshiftError } from '../../core/errors';
import { planKey } from '../../core/names/object-names';
import { PLAN_ENTRY_BYTES } from '../../core/plan/plan-entry';
import type { Range } from '../../core/range';
import type { ObjectStore } from '../../storage/object-store';

/** A plan of a batch. */
export interface PlanName {
  readonly batchId: string;
  readonly planNonce: string;
  readonly safeModel: string;
}

/** The stored entries of a range of positions. @throws plan_unreadable, object_store_failed */
export async function readPlan(
  store: Pick<ObjectStore, 'read'>,
  { batchId, planNonce, safeModel }: PlanName,
  { from, to }: Range,
): Promise<Buffer> {
  const bytes = { from: from * PLAN_ENTRY_BYTES, to: to * PLAN_ENTRY_BYTES };
  const plan = await store
    .read(planKey(batchId, planNonce, safeModel), bytes)
    .catch(missingAs('plan_unreadable', `plan of ${safeModel} is gone`));
  if (plan.length === bytes.to - bytes.from) return plan;
  const message = `plan of ${safeModel} is shorter than its map says`;
  throw new NightshiftError('plan_unreadable', message);
}
