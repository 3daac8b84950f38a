import { Context } from '@temporalio/activity';
import { NO_USAGE } from '../../core/batch/counts';
import { isTerminal, type TerminalStatus } from '../../core/batch/status';
import { NightshiftError, isNightshiftError } from '../../core/errors';
import { inputErrorsKey, modelMapKey } from '../../core/names/object-names';
import { parseModelMap, type ModelMap } from '../../core/plan/model-map';
import type { ObjectStore } from '../../storage/object-store';
import type { ErrorEntry, TerminalRecord } from '../../storage/postgres/batches/types';
import { closeBatch } from './close-manifest';
import type { BatchToFinalize, FinalizeDeps } from './deps';
import { mergeBatch } from './merge-batch';
import { FinalizeWindow } from './window';
import type { Heartbeat } from '../runtime/heartbeat';
import { withHeartbeat } from '../runtime/with-heartbeat';
import type { FinalizeInput, FinalizeResult } from '../contract';

export type { FinalizeDeps } from './deps';

/**
 * The activity that ends a batch: manifest, result files, terminal record. Without a cause it first
 * demands an answer for every routed line, or answers the holes and writes nothing. Idempotent: every
 * object is put only if absent, and a second run, however late, makes the same files and counts from the
 * manifest that it finds. Heartbeats every second. Fails with `not_found` without a row;
 * `plan_unreadable`, `object_corrupt` and `input_missing` are final, all else is retried: for ever, or,
 * once an end was asked for, while `windowMs` lasts.
 */
export function createFinalize(
  deps: FinalizeDeps,
): (input: FinalizeInput) => Promise<FinalizeResult> {
  return async (input) => {
    const window = openWindow(input);
    return withHeartbeat(
      async (heartbeat) => {
        const batch = await deps.batches.find(input.batchId);
        if (batch === null) throw new NightshiftError('not_found', `no batch ${input.batchId}`);
        if (batch.stopCause !== null) window.count();
        window.check();
        return finalizeBatch(deps, input, { batch, liveness: heartbeat });
      },
      {
        details: (bytes) => ({ bytes, ...window.beat(Date.now()) }),
        // The next attempt learns how long this one took.
        beatsOnFailure: true,
        judge: (failure) => window.judge(failure),
      },
    );
  };
}

/** One attempt inside another activity, which keeps itself alive; `check` ends it by throwing. */
export function createFinalizeNow(
  deps: FinalizeDeps,
): (input: FinalizeInput, check: () => void) => Promise<FinalizeResult> {
  return async (input, check) => {
    const batch = await deps.batches.find(input.batchId);
    if (batch === null) throw new NightshiftError('not_found', `no batch ${input.batchId}`);
    return finalizeBatch(deps, input, { batch, liveness: { bytes: 0, check } });
  };
}

function openWindow({ windowMs, cause }: FinalizeInput): FinalizeWindow {
  const earlier: unknown = Context.current().info.heartbeatDetails;
  return new FinalizeWindow({ windowMs: windowMs ?? null, earlier, isCounted: cause !== null });
}

/** One attempt, for those who keep it alive themselves. */
export async function finalizeBatch(
  deps: FinalizeDeps,
  input: FinalizeInput,
  at: { batch: BatchToFinalize; liveness: Pick<Heartbeat, 'bytes' | 'check'> },
): Promise<FinalizeResult> {
  if (input.nonce !== null) return finalize(deps, input, at);
  // What a lost ingestion writes after the end changes nothing any more.
  if (isTerminal(at.batch.status)) return nothingMade(at.batch.status);
  return (await hasPlan(deps, input)) ? finalize(deps, input, at) : recordOnly(deps, input);
}

/**
 * Whether there is a plan though the workflow knows of none: an earlier run may have sent requests by
 * it. One that nobody can read is none.
 */
async function hasPlan(
  { store }: FinalizeDeps,
  { batchId, cause }: FinalizeInput,
): Promise<boolean> {
  if (cause === null) return false;
  try {
    const map = await readIfThere(store, modelMapKey(batchId));
    if (map !== null) parseModelMap(map);
    return map !== null;
  } catch (error) {
    if (isNightshiftError(error) && !error.retryable) return false;
    throw error;
  }
}

function nothingMade(status: TerminalStatus): FinalizeResult {
  const counts = { total: 0, completed: 0, failed: 0 };
  return { kind: 'done', status, counts, outputFileId: null, errorFileId: null };
}

/** A batch without a plan: its file was refused, or it ended before one was made. */
async function recordOnly(
  deps: FinalizeDeps,
  { batchId, cause }: FinalizeInput,
): Promise<FinalizeResult> {
  const errors = await readInputErrors(deps.store, batchId);
  if (errors === null && cause === null) {
    throw new NightshiftError('plan_unreadable', `${batchId} has neither a plan nor errors`);
  }
  const files = { outputFile: null, errorFile: null };
  const counts = { total: 0, completed: 0, failed: 0 };
  const record = { batchId, cause, counts, usage: NO_USAGE, model: null, ...files, errors };
  return writeRecord(deps, record);
}

async function finalize(
  deps: FinalizeDeps,
  { batchId, cause }: FinalizeInput,
  { batch, liveness }: { batch: BatchToFinalize; liveness: Pick<Heartbeat, 'bytes' | 'check'> },
): Promise<FinalizeResult> {
  const { store, journal } = deps;
  const map = await readModelMap(store, batchId);
  const place = { store, batchId, map };
  const check = () => liveness.check();
  const closing = await closeBatch({ journal, place, cause, check });
  if (closing.kind === 'holes') return closing;

  const { totals, outputFile, errorFile } = await mergeBatch({
    journal,
    place,
    manifest: closing.manifest,
    cause,
    inputKey: batch.inputObjectKey,
    tenantFolder: deps.tenantHash(batch.tenant),
    progress: (answerBytes) => {
      liveness.bytes += answerBytes;
      liveness.check();
    },
  });
  const { counts, usage } = totals;
  const end = closing.manifest.cause ?? cause;
  const requested = onlyModel(map);
  const model = requested === null ? null : (totals.model ?? requested);
  const files = { outputFile, errorFile };
  return writeRecord(deps, { batchId, cause: end, counts, usage, model, ...files, errors: null });
}

async function writeRecord(deps: FinalizeDeps, record: TerminalRecord): Promise<FinalizeResult> {
  const status = await deps.batches.recordEnd(record);
  return {
    kind: 'done',
    status,
    counts: record.counts,
    outputFileId: record.outputFile?.id ?? null,
    errorFileId: record.errorFile?.id ?? null,
  };
}

async function readModelMap(store: ObjectStore, batchId: string): Promise<ModelMap> {
  const bytes = await readIfThere(store, modelMapKey(batchId));
  if (bytes === null) throw new NightshiftError('plan_unreadable', `${batchId} has no plan`);
  return parseModelMap(bytes);
}

async function readInputErrors(store: ObjectStore, batchId: string): Promise<ErrorEntry[] | null> {
  const bytes = await readIfThere(store, inputErrorsKey(batchId));
  if (bytes === null) return null;
  try {
    const { data } = JSON.parse(bytes.toString('utf8')) as { data: ErrorEntry[] };
    if (Array.isArray(data)) return data;
  } catch (cause) {
    throw new NightshiftError('object_corrupt', 'errors.json is not JSON', { cause });
  }
  throw new NightshiftError('object_corrupt', 'errors.json has no list of errors');
}

async function readIfThere(store: ObjectStore, key: string): Promise<Buffer | null> {
  try {
    return await store.read(key);
  } catch (error) {
    if (isNightshiftError(error, 'object_missing')) return null;
    throw error;
  }
}

/** The model of all lines, routed or not; null where they name more than one (contract §7.1). */
function onlyModel(map: ModelMap): string | null {
  const models = new Set([...Object.keys(map.model_to_safe), ...Object.keys(map.unrouted)]);
  const [model = null] = models;
  return models.size === 1 ? model : null;
}
