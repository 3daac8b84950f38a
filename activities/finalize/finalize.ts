import { Context } from '@temporalio/activity';
import { NO_USAGE } from '../../core/batch/counts';
import { isTerminal, type TerminalStatus } from '../../core/batch/status';
import { NightshiftError } from '../../core/errors';
import type { TerminalRecord } from '../../storage/postgres/batches/types';
import type { FinalizeInput, FinalizeResult } from '../contract';
import { withHeartbeat } from '../runtime/with-heartbeat';
import { readInputErrors } from '../input-errors';
import { hasReadablePlan, onlyModel, readModelMap } from './batch-objects';
import { closeBatch } from './close-batch';
import type { BatchToFinalize, FinalizeDeps, FinalizeProgress } from './deps';
import { FinalizeWindow } from './finalize-window';
import { makeResultFiles } from './result-files';

export type { FinalizeDeps } from './deps';

/** The files of more lines take long enough for the phase to be shown. */
const ANNOUNCED_LINES = 50_000;

const NO_COUNTS = { total: 0, completed: 0, failed: 0 };

/**
 * The activity that ends a batch: manifest, result files, terminal record
 * (docs/design/batch-path.md#finalization). Without a cause, every planned line must have an answer; if some
 * have none, it returns their ranges and writes nothing. Idempotent: every object is put only if absent, and
 * a later run makes the same files from the manifest that it finds.
 *
 * Fails with `not_found` if there is no row. `plan_unreadable`, `object_corrupt` and `input_missing` are
 * final. All other failures are retried: without a limit, or within `windowMs` once a stop is known.
 */
export function createFinalize(
  deps: FinalizeDeps,
): (input: FinalizeInput) => Promise<FinalizeResult> {
  return async (input) => {
    const window = openWindow(input);
    return withHeartbeat(
      async (heartbeat) => {
        const batch = await findBatch(deps, input);
        if (batch.stopCause !== null) window.count();
        window.check();
        if (input.announces === true) announce(deps, input.batchId);
        return finalizeBatch(deps, input, { batch, progress: heartbeat });
      },
      {
        details: (bytes) => ({ bytes, ...window.beat(Date.now()) }),
        // The next attempt must learn how long this one took.
        beatsOnFailure: true,
        judge: (failure) => window.judge(failure),
      },
    );
  };
}

/** One attempt within another activity, which sends its own heartbeats. It ends when `check` throws. */
export function createFinalizeNow(
  deps: FinalizeDeps,
): (input: FinalizeInput, check: () => void) => Promise<FinalizeResult> {
  return async (input, check) => {
    const batch = await findBatch(deps, input);
    return finalizeBatch(deps, input, { batch, progress: { bytes: 0, check } });
  };
}

/** Not awaited: it is only shown, and the record of the end does without it. */
function announce({ batches }: FinalizeDeps, batchId: string): void {
  batches.recordPhase(batchId, { status: 'finalizing' }).catch(() => undefined);
}

interface Attempt {
  readonly batch: BatchToFinalize;
  readonly progress: FinalizeProgress;
}

async function findBatch(
  { batches }: FinalizeDeps,
  { batchId }: FinalizeInput,
): Promise<BatchToFinalize> {
  const batch = await batches.find(batchId);
  if (batch === null) throw new NightshiftError('not_found', `there is no batch ${batchId}`);
  return batch;
}

function openWindow({ windowMs, cause, isBounded }: FinalizeInput): FinalizeWindow {
  const earlier: unknown = Context.current().info.heartbeatDetails;
  const isCounted = cause !== null || isBounded === true;
  return new FinalizeWindow({ windowMs: windowMs ?? null, earlier, isCounted });
}

async function finalizeBatch(
  deps: FinalizeDeps,
  input: FinalizeInput,
  attempt: Attempt,
): Promise<FinalizeResult> {
  if (input.nonce !== null) return finalizePlanned(deps, input, attempt);
  // An ingestion that was given up may still write a plan after the end. That changes nothing.
  const { status } = attempt.batch;
  if (isTerminal(status)) return doneWithoutFiles(status);
  // The workflow has no plan, but an earlier run may have made one and sent its requests.
  const isPlanned = input.cause !== null && (await hasReadablePlan(deps.store, input.batchId));
  return isPlanned ? finalizePlanned(deps, input, attempt) : recordOnly(deps, input);
}

/** A batch without a plan: its file was refused, or it ended before there was one. */
async function recordOnly(
  deps: FinalizeDeps,
  { batchId, cause }: FinalizeInput,
): Promise<FinalizeResult> {
  const errors = await readInputErrors(deps.store, batchId);
  if (errors === null && cause === null) {
    throw new NightshiftError('plan_unreadable', `${batchId} has neither a plan nor errors`);
  }
  const files = { outputFile: null, errorFile: null };
  const counts = NO_COUNTS;
  const record = { batchId, cause, counts, usage: NO_USAGE, model: null, ...files, errors };
  return writeRecord(deps, record);
}

async function finalizePlanned(
  deps: FinalizeDeps,
  input: FinalizeInput,
  { batch, progress }: Attempt,
): Promise<FinalizeResult> {
  const { store, journal } = deps;
  const { batchId, cause } = input;
  const map = await readModelMap(store, batchId);
  const plan = { store, batchId, map };
  const closing = await closeBatch({ journal, plan, cause, check: () => progress.check() });
  if (closing.kind === 'holes') return closing;
  // Whoever ends a batch early can say so only now. Of most batches, the end comes before anyone sees it.
  if (input.isBounded === true && map.line_count > ANNOUNCED_LINES) announce(deps, batchId);

  const { totals, outputFile, errorFile } = await makeResultFiles({
    ...{ journal, plan, cause, manifest: closing.manifest },
    draft: await deps.drafts.take(batchId),
    inputKey: batch.inputObjectKey,
    tenantFolder: deps.tenantHash(batch.tenant),
    onAnswers: (answerBytes) => {
      progress.bytes += answerBytes;
      progress.check();
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

function doneWithoutFiles(status: TerminalStatus): FinalizeResult {
  return { kind: 'done', status, counts: NO_COUNTS, outputFileId: null, errorFileId: null };
}
