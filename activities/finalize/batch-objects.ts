import { NightshiftError, isNightshiftError, nullIfMissing } from '../../core/errors';
import { modelMapKey } from '../../core/names/object-names';
import { parseModelMap, type ModelMap } from '../../core/plan/model-map';
import type { ObjectStore } from '../../storage/object-store';

type Reads = Pick<ObjectStore, 'read'>;

/** Whether there is a plan that can be read. @throws object_store_failed */
export async function hasReadablePlan(store: Reads, batchId: string): Promise<boolean> {
  try {
    await readModelMap(store, batchId);
    return true;
  } catch (error) {
    if (isNightshiftError(error) && !error.retryable) return false;
    throw error;
  }
}

/** Reads `model_map.json`. @throws plan_unreadable, object_corrupt, object_store_failed */
export async function readModelMap(store: Reads, batchId: string): Promise<ModelMap> {
  const bytes = await nullIfMissing(store.read(modelMapKey(batchId)));
  if (bytes === null) throw new NightshiftError('plan_unreadable', `${batchId} has no plan`);
  return parseModelMap(bytes);
}

/** The model of all lines, with or without a plan; null if they name several. */
export function onlyModel(map: ModelMap): string | null {
  const models = new Set([...Object.keys(map.model_to_safe), ...Object.keys(map.unrouted)]);
  const [model = null] = models;
  return models.size === 1 ? model : null;
}
