import { Context } from '@temporalio/activity';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import { attemptMs } from '../../core/chunks/hold-limit';
import { PRIORITY } from '../../core/chunks/priority';
import type { Logger } from '../../platform/logger';
import type {
  BatchActivities,
  ExecuteChunkInput,
  FinalizeResult,
  PlannedModel,
  PlannedOrInvalid,
  SmallBatchInput,
  SmallBatchResult,
} from '../contract';
import { endEarly } from '../finalize/end-early';

/** What the activity needs. */
export interface SmallBatchDeps {
  /** The steps that it does one after the other, in its own attempt. */
  readonly steps: Pick<BatchActivities, 'ingest' | 'executeChunk' | 'finalize' | 'projectStatus'>;
  readonly logger: Pick<Logger, 'warn'>;
  /** Aborts when the process shuts down. */
  readonly drain: AbortSignal;
}

/** As many lines as the first chunk of any model has. */
const MAX_LINES = 64;
/** What is logged if something goes wrong. */
const GIVEN_UP = 'a small batch goes on step by step';

type Planned = PlannedOrInvalid & { readonly kind: 'planned' };

/**
 * The activity that does all of a small batch: one activity instead of three, and a workflow task for each of two
 * (docs/design/execution.md#small-batches). It does the very steps that the workflow would schedule, in the same order.
 * Each leaves something durable behind and is idempotent, so the workflow may go on behind any of them. Whatever keeps
 * it from going on at once ends it early: waiting, retrying and halving ranges are the business of the workflow.
 *
 * @throws what ingestion throws
 */
export function createRunSmallBatch(
  deps: SmallBatchDeps,
): (input: SmallBatchInput) => Promise<SmallBatchResult> {
  return async (input) => {
    const { batchId } = input;
    const plan = await deps.steps.ingest({ batchId, decidesLater: true });
    if (plan.kind === 'invalid') return withEnd({ plan }, await tryToEnd(deps, input, null));
    const model = onlyModel(plan, input);
    if (model === null || deps.drain.aborted) return { plan };
    return answer(deps, input, { plan, model });
  };
}

/** The model of a plan that one chunk may answer; null if the workflow must do it. */
function onlyModel({ models, unroutedLines }: Planned, { boxMs }: SmallBatchInput) {
  const [model, ...others] = models;
  if (model === undefined || others.length > 0 || unroutedLines > 0) return null;
  const { entries, delegate, undecided, requestTimeoutMs } = model;
  if (entries > MAX_LINES || delegate !== undefined || undecided === true) return null;
  const needsMs = attemptMs({ sendingMs: boxMs, requestTimeoutMs });
  return needsMs <= Context.current().info.startToCloseTimeoutMs ? model : null;
}

async function answer(
  deps: SmallBatchDeps,
  input: SmallBatchInput,
  { plan, model }: { readonly plan: Planned; readonly model: PlannedModel },
): Promise<SmallBatchResult> {
  // Not awaited: the first request must not wait for the row.
  const projected = projectInProgress(deps, input, { plan, model });
  const chunk = await deps.steps
    .executeChunk(chunkInput(input, plan, model))
    .catch((error: unknown) => givenUp(deps, input, error));
  const isInRow = await projected;
  if (chunk === null) return { plan };
  const isAnswered = chunk.left === EXIT_REASON.done && chunk.next === model.entries;
  const mayEnd = isAnswered && isInRow && chunk.stopCause === null;
  return withEnd({ plan, chunk }, mayEnd ? await tryToEnd(deps, input, plan.nonce) : null);
}

/** Whether the row says `in_progress` now, or what came after it, and no end is asked for. Never rejects. */
async function projectInProgress(
  { steps }: SmallBatchDeps,
  { batchId }: SmallBatchInput,
  { plan, model: { model } }: { readonly plan: Planned; readonly model: PlannedModel },
): Promise<boolean> {
  const progress = { total: plan.lineCount, model, models: [model] };
  return steps.projectStatus({ batchId, status: 'in_progress', ...progress }).then(
    ({ found, stopCause }) => found && stopCause === null,
    () => false,
  );
}

function chunkInput(
  { boxMs, ...batch }: SmallBatchInput,
  { nonce }: Planned,
  { model, safe, entries }: PlannedModel,
): ExecuteChunkInput {
  const range = { from: 0, to: entries, openInModel: entries };
  const rest = { boxMs, p95Ms: null, priority: PRIORITY.normal, reroutes: true };
  return { ...batch, planNonce: nonce, model, safe, ...range, ...rest };
}

function tryToEnd(
  deps: SmallBatchDeps,
  { batchId, deadlineMs }: SmallBatchInput,
  nonce: string | null,
): Promise<FinalizeResult | null> {
  return endEarly(deps, deadlineMs, { input: { batchId, nonce, cause: null }, failure: GIVEN_UP });
}

function withEnd(done: SmallBatchResult, ended: FinalizeResult | null): SmallBatchResult {
  return ended === null ? done : { ...done, ended };
}

function givenUp({ logger }: SmallBatchDeps, { batchId }: SmallBatchInput, error: unknown): null {
  logger.warn({ err: error, batchId }, GIVEN_UP);
  return null;
}
