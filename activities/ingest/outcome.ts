import { randomBytes } from 'node:crypto';
import { forEachConcurrently } from '../../core/async/for-each-concurrently';
import { nullIfMissing } from '../../core/errors';
import type { InputError } from '../../core/openai/input-errors';
import {
  inputErrorsKey,
  inputFilesKey,
  modelMapKey,
  planKey,
  runsKey,
} from '../../core/names/object-names';
import { encodeInputFiles, type InputFiles } from '../../core/plan/input-files';
import { encodeModelMap, parseModelMap, type ModelMap } from '../../core/plan/model-map';
import type { ObjectBody, ObjectStore } from '../../storage/object-store';
import { readInputErrors } from '../input-errors';
import type { PlanCollector } from './plan-collector';

/** What ingestion found. The objects that it names are durable. */
export type IngestResult =
  | {
      readonly kind: 'planned';
      /** Names the folder of the plans. */
      readonly nonce: string;
      /** Requests in the file, also of models without a plan. */
      readonly lineCount: number;
      /** Models with a plan. */
      readonly models: readonly {
        readonly safeModel: string;
        readonly model: string;
        readonly entries: number;
        /** No worker could send it when the file was read. */
        readonly undecided?: boolean;
      }[];
      /** Lines outside all plans. */
      readonly unroutedLines: number;
    }
  | {
      readonly kind: 'invalid';
      /** Entries in `errors.json`. */
      readonly errorCount: number;
    };

/** Plans that are written concurrently. */
const CONCURRENT_WRITES = 8;

/** The durable result of an earlier attempt, or null. @throws plan_unreadable, object_corrupt */
export async function earlierResult(
  store: ObjectStore,
  batchId: string,
): Promise<IngestResult | null> {
  const map = await nullIfMissing(store.read(modelMapKey(batchId)));
  if (map !== null) return planned(parseModelMap(map));
  const errors = await readInputErrors(store, batchId);
  return errors === null ? null : { kind: 'invalid', errorCount: errors.length };
}

/** Writes `errors.json`. If there is a result already, returns that one. */
export async function writeErrors(
  store: ObjectStore,
  batchId: string,
  errors: readonly InputError[],
): Promise<IngestResult> {
  const body = Buffer.from(`${JSON.stringify({ data: errors })}\n`);
  await store.putIfAbsent(inputErrorsKey(batchId), body);
  // Another attempt may have been first, and may even have written a plan.
  return (await earlierResult(store, batchId)) ?? { kind: 'invalid', errorCount: errors.length };
}

/** What {@link writePlan} writes. */
export interface PlanToWrite {
  readonly plan: PlanCollector;
  readonly lineCount: number;
  /** Null if requests of the endpoint name no files. */
  readonly files: InputFiles | null;
  /** Writes what must be durable before the batch is planned. */
  readonly record?: () => Promise<void>;
}

/**
 * Writes the plans and their runs into a folder with a nonce of its own, and then `model_map.json`. If the map exists
 * already, another attempt was first: its map is the result, and our plans are garbage for the sweep.
 */
export async function writePlan(
  store: ObjectStore,
  batchId: string,
  { plan, lineCount, files, record }: PlanToWrite,
): Promise<IngestResult> {
  const nonce = randomBytes(8).toString('hex');
  const put = async (key: string, body: ObjectBody) => void (await store.putIfAbsent(key, body));
  // All in one go: each write waits for the disk. The map makes them count, so it comes after all of them.
  function* writes(): Generator<() => Promise<void>> {
    if (record !== undefined) yield record;
    for (const { safeModel, builder } of plan.models()) {
      const { pieces, runs } = builder.build();
      yield () => put(planKey(batchId, nonce, safeModel), pieces());
      if (runs !== null) yield () => put(runsKey(batchId, nonce, safeModel), runs);
    }
    if (files !== null) yield () => put(inputFilesKey(batchId, nonce), encodeInputFiles(files));
  }
  await forEachConcurrently(writes(), CONCURRENT_WRITES, (write) => write());
  const map = plan.modelMap(nonce, lineCount);
  const result = await store.putIfAbsent(modelMapKey(batchId), encodeModelMap(map));
  if (result === 'created') return planned(map);
  return planned(parseModelMap(await store.read(modelMapKey(batchId))));
}

function planned(map: ModelMap): IngestResult {
  return {
    kind: 'planned',
    nonce: map.nonce,
    lineCount: map.line_count,
    models: Object.entries(map.safe_to_model).map(([safeModel, model]) => {
      const entry = { safeModel, model, entries: map.entries[safeModel] ?? 0 };
      return map.undecided?.includes(safeModel) === true ? { ...entry, undecided: true } : entry;
    }),
    unroutedLines: Object.values(map.unrouted).reduce((sum, lines) => sum + lines, 0),
  };
}
