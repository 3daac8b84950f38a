import { randomBytes } from 'node:crypto';
import { NightshiftError, nullIfMissing } from '../../core/errors';
import type { InputError } from '../../core/openai/input-errors';
import { inputErrorsKey, modelMapKey, planKey } from '../../core/names/object-names';
import { encodeModelMap, parseModelMap, type ModelMap } from '../../core/plan/model-map';
import type { ObjectStore } from '../../storage/object-store';
import type { PlanCollector } from './plan-collector';

/** What ingestion found; the objects it speaks of are durable. */
export type IngestResult =
  | {
      readonly kind: 'planned';
      /** The folder of the plans. */
      readonly nonce: string;
      /** Requests in the file, routed or not. */
      readonly lineCount: number;
      /** Models with a plan. */
      readonly models: readonly {
        readonly safe: string;
        readonly model: string;
        readonly entries: number;
        /** No worker could send it when the file was read. */
        readonly undecided?: boolean;
      }[];
      /** Lines of models that no backend serves. */
      readonly unroutedLines: number;
    }
  | {
      readonly kind: 'invalid';
      /** Entries in `errors.json`. */
      readonly errorCount: number;
    };

/** Plans are small and many only where a file names many models. */
const WRITES_AT_ONCE = 8;

/** The durable result of an earlier run, or null. @throws plan_unreadable, object_corrupt */
export async function earlierResult(
  store: ObjectStore,
  batchId: string,
): Promise<IngestResult | null> {
  const map = await nullIfMissing(store.read(modelMapKey(batchId)));
  if (map !== null) return planned(parseModelMap(map));
  const errors = await nullIfMissing(store.read(inputErrorsKey(batchId)));
  return errors === null ? null : { kind: 'invalid', errorCount: countEntries(errors) };
}

/** Makes `errors.json`, unless it is there: then that one counts. */
export async function writeErrors(
  store: ObjectStore,
  batchId: string,
  errors: readonly InputError[],
): Promise<IngestResult> {
  const body = Buffer.from(`${JSON.stringify({ data: errors })}\n`);
  await store.putIfAbsent(inputErrorsKey(batchId), body);
  // A rival may have been first, or have found a plan: the answer is what lies there.
  return (await earlierResult(store, batchId)) ?? { kind: 'invalid', errorCount: errors.length };
}

/**
 * Makes the plans under a nonce of their own and then `model_map.json`. Who finds the map there lost a
 * race and obeys it; its own plans are scratch.
 */
export async function writePlan(
  store: ObjectStore,
  batchId: string,
  { plan, lineCount }: { readonly plan: PlanCollector; readonly lineCount: number },
): Promise<IngestResult> {
  const nonce = randomBytes(8).toString('hex');
  const models = plan.models();
  for (let i = 0; i < models.length; i += WRITES_AT_ONCE) {
    const few = models.slice(i, i + WRITES_AT_ONCE);
    await Promise.all(
      few.map(({ safe, builder }) =>
        store.putIfAbsent(planKey(batchId, nonce, safe), builder.pieces()),
      ),
    );
  }
  const map = plan.modelMap(nonce, lineCount);
  const put = await store.putIfAbsent(modelMapKey(batchId), encodeModelMap(map));
  if (put === 'created') return planned(map);
  return planned(parseModelMap(await store.read(modelMapKey(batchId))));
}

function planned(map: ModelMap): IngestResult {
  return {
    kind: 'planned',
    nonce: map.nonce,
    lineCount: map.line_count,
    models: Object.entries(map.safe_to_model).map(([safe, model]) => {
      const entry = { safe, model, entries: map.entries[safe] ?? 0 };
      return map.undecided?.includes(safe) === true ? { ...entry, undecided: true } : entry;
    }),
    unroutedLines: Object.values(map.unrouted).reduce((sum, lines) => sum + lines, 0),
  };
}

function countEntries(bytes: Buffer): number {
  try {
    const { data } = JSON.parse(bytes.toString('utf8')) as { data?: unknown };
    if (Array.isArray(data)) return data.length;
  } catch (cause) {
    throw new NightshiftError('object_corrupt', 'errors.json is not JSON', { cause });
  }
  throw new NightshiftError('object_corrupt', 'errors.json has no list of errors');
}
