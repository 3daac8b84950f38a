import {
  ApplicationFailure,
  CancellationScope,
  defineSignal,
  log,
  patched,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type {
  FinalizeResult,
  OpenedBatch,
  RowState,
  SmallBatchResult,
  UnansweredRange,
} from '../activities/contract';
import type { RequestCounts } from '../core/batch/counts';
import type { StopCause } from '../core/batch/status';
import { inProgress } from '../core/batch/in-progress';
import { isTerminal } from '../core/batch/status';
import { ingestActivity, step } from './activity-policies';
import { BatchDisplay } from './batch-display';
import type { BatchInput, BatchResult, BatchResume, ResumedModel } from './contract';
import { CANCEL_SIGNAL } from './contract';
import { Deadline } from './deadline';
import { awaitReleased, finalizeBatch } from './finalization';
import { freshResume, handOver, shouldHandOver, startOf } from './hand-over';
import type { LaneContext } from './lane-context';
import { DelegatedModel } from './delegated-model';
import { ModelLanes } from './model-lanes';
import type { ModelRun } from './model-run';
import { QueueWatch } from './queue-watch';
import { restOf, runSmallBatch, SMALL_AT_ONCE } from './small-batch';
import { StopControl } from './stop';
import { settleUndecided } from './undecided-models';
import { untilStopped } from './until-stopped';

/** How long ingestion may go on under a stop: enough for a file of a few thousand lines. */
const STOPPED_INGESTION_MS = 5_000;

/** Patch id of workflows whose last chunk may end the batch. */
const LAST_ENDS = 'last-chunk-ends-batch';

/** The result files of more lines take longer than the attempt of a chunk should. */
const MOST_LINES_AT_ONCE = 250_000;

/** Patch id of workflows that look up models without a route again before their lines are given up. */
const DECIDES_LATER = 'unrouted-decided-last';

/** Patch id of workflows whose ingestion and finalization write their phases into the row. */
const ANNOUNCED = 'steps-write-phases';

/** Asks a batch to stop. Repeating it changes nothing. */
const cancelBatch = defineSignal(CANCEL_SIGNAL);

/**
 * Takes one batch from its row to its terminal record: open → ingest → execute → finalize
 * (docs/design/batch-path.md#steps).
 *
 * The body runs in a non-cancellable scope, so that answers that were paid for are always delivered. A stop
 * (cancel signal, cancellation in the Temporal UI, the deadline, a system failure) cancels only the chunks.
 */
export async function batchWorkflow(input: BatchInput): Promise<BatchResult> {
  const stop = new StopControl(input.batchId);
  // Before the first await: a signal in the first workflow task must find its handler.
  setHandler(cancelBatch, () => stop.request('cancelled'));
  CancellationScope.current().cancelRequested.catch(() => stop.request('cancelled'));
  return CancellationScope.nonCancellable(() => new BatchRun(input, stop).run());
}

class BatchRun {
  readonly #input: BatchInput;
  readonly #stop: StopControl;
  readonly #deadline: Deadline;
  readonly #display: BatchDisplay;
  #plan: BatchResume | null;
  #models: ModelRun[] = [];
  /** A chunk may be running of which this run does not know. */
  #isUnaccounted = false;
  /** The row, if ingestion has written `in_progress` into it. */
  #row: RowState | null = null;
  /** Set if the last chunk has ended the batch. */
  #ended: FinalizeResult | null = null;
  /** The projection of `in_progress` into the row, if ingestion has not. */
  #inProgress: Promise<void> | null = null;

  constructor(input: BatchInput, stop: StopControl) {
    this.#input = input;
    this.#stop = stop;
    this.#deadline = new Deadline(stop);
    this.#display = new BatchDisplay(stop);
    this.#plan = input.resume ?? null;
  }

  async run(): Promise<BatchResult> {
    const opened = await this.#open();
    if (opened === null) return nothingToDo('missing');
    if (isTerminal(opened.status)) return nothingToDo(opened.status);
    const isSmall = this.#isSmall(opened);
    this.#watchDeadline(opened, isSmall);
    const small = isSmall ? await this.#runSmall(opened) : null;
    // The timer of the deadline is left alone: it ends with the workflow, without an event.
    if (small?.ended !== undefined) return this.#conclude(small.ended);
    try {
      const isRefused = small?.plan.kind === 'invalid';
      if (!isRefused) this.#plan ??= await this.#ingest(opened);
      const ended = this.#plan === null ? null : await this.#execute(opened, this.#plan);
      this.#deadline.cancel();
      return this.#conclude(ended ?? (await this.#finalizeStopped(opened)));
    } finally {
      this.#deadline.cancel();
    }
  }

  #isSmall({ small }: OpenedBatch): boolean {
    const mayBe = small !== undefined && this.#plan === null && !this.#stop.requested;
    return mayBe && patched(SMALL_AT_ONCE);
  }

  /** As much of a small batch as can be done at once; null if that failed. */
  async #runSmall(opened: OpenedBatch): Promise<SmallBatchResult | null> {
    const small = await runSmallBatch(this.#input.batchId, opened, this.#stop);
    // Its worker may still be sending.
    if (small === null) this.#isUnaccounted = true;
    else this.#plan = restOf(small);
    return small;
  }

  /**
   * Waits up to an hour for the row. The API inserts it before it starts the workflow, but PostgreSQL may
   * have been restored to an earlier state.
   */
  async #open(): Promise<OpenedBatch | null> {
    for (let minute = 0; minute < 60; minute++) {
      const opened = await step('openBatch', { batchId: this.#input.batchId });
      if (opened.found) {
        this.#stop.observe(opened);
        return opened;
      }
      await sleep('1 minute', { summary: 'the row of the batch is not there yet' });
    }
    return null;
  }

  #watchDeadline({ expiresAtMs, settled, answered }: OpenedBatch, isSmall: boolean): void {
    if (settled === true) return;
    if (answered === true) this.#deadline.hold();
    // The deadline had already passed when the workflow started.
    if (Date.now() >= expiresAtMs && patched('expired-when-opened')) this.#deadline.pass();
    else if (!isSmall) this.#deadline.watch(expiresAtMs);
    else this.#deadline.watch(expiresAtMs, () => this.#display.showSmall());
  }

  /**
   * Plans the file; null if there is no plan. Under a stop a small file still gets its plan, so that every
   * line gets its error code. A batch whose ingestion takes longer, or never ends, ends without a plan.
   */
  async #ingest(opened: OpenedBatch): Promise<BatchResume | null> {
    const { batchId } = this.#input;
    const decidesLater = patched(DECIDES_LATER) ? { decidesLater: true } : {};
    const announces = stepsAnnounce(opened);
    const ingest = () => ingestActivity(opened.settings)({ batchId, announces, ...decidesLater });
    try {
      const outcome = patched('stop-ends-ingestion')
        ? await untilStopped(this.#stop, STOPPED_INGESTION_MS, ingest)
        : await ingest();
      if (outcome === null) log.info('ingestion cut short by a stop', { batchId });
      if (outcome?.kind !== 'planned') return null;
      this.#row = outcome.row ?? null;
      return freshResume(outcome);
    } catch (error) {
      log.error('ingestion failed', { error: String(error) });
      this.#stop.request('failed');
      return null;
    }
  }

  /** Runs chunks until every line is settled; null if a stop came first. */
  async #execute(opened: OpenedBatch, plan: BatchResume): Promise<FinalizeResult | null> {
    const lanes = this.#prepareModels(opened, plan);
    this.#announceInProgress(plan);
    for (let isSettled = opened.settled === true || opened.answered === true; ; isSettled = false) {
      if (!isSettled) await this.#runLanes(opened, lanes);
      if (this.#ended !== null) return this.#ended;
      await this.#inProgress;
      if (this.#stop.requested) return null;
      if (lanes.handingOver()) return handOver(this.#input.batchId, plan, this.#models);
      // Every line is settled: from here on the deadline can no longer expire the batch.
      if (patched('deadline-until-done')) this.#deadline.hold();
      else this.#deadline.cancel();
      const result = await this.#finalizeComplete(opened, plan);
      if (result.kind === 'done') return result;
      this.#deadline.release();
      if (this.#stop.requested) return null;
      // If this run began with every line settled, it has run no chunk: all its ranges are still open.
      if (!isSettled) this.#reopen(result.holes);
    }
  }

  #reopen(ranges: readonly UnansweredRange[]): void {
    for (const { safe, from, to } of ranges) {
      const model = this.#models.find(({ plan }) => plan.safe === safe);
      model?.progress.open.giveBack({ from, to });
    }
  }

  #prepareModels(opened: OpenedBatch, plan: BatchResume): LaneContext {
    const waitsAtServer = patched('waits-at-the-server');
    const hasUndecided = plan.models.some(({ undecided }) => undecided === true);
    const lanes: LaneContext = {
      batchId: this.#input.batchId,
      planNonce: plan.nonce,
      opened,
      stop: this.#stop,
      startedAtMs: startOf(plan),
      waitsAtServer,
      routesAreFresh: this.#input.resume === undefined,
      decidesLater: hasUndecided && patched(DECIDES_LATER),
      isAllHandedOut: () => this.#isAllHandedOut(plan),
      onEnded: (end) => (this.#ended = end),
      handingOver: () => shouldHandOver(opened.settings, this.#models),
      onRouted: () => this.#display.showModels(this.#routedModels),
      onChange: () => this.#display.refresh(),
    };
    this.#models = plan.models.map((model) => runOf(model, lanes));
    this.#display.show(plan, this.#models);
    return lanes;
  }

  /** Only if the row says `in_progress`, and the result files are made in a moment. */
  #isAllHandedOut({ lineCount }: BatchResume): boolean {
    const isHandedOut = ({ plan, isUndecided, progress }: ModelRun): boolean =>
      plan.delegate === undefined && !isUndecided && progress.open.isEmpty;
    const mayEnd = this.#row !== null && lineCount <= MOST_LINES_AT_ONCE;
    return mayEnd && this.#models.every(isHandedOut) && patched(LAST_ENDS);
  }

  /** Not awaited: the first request must not wait for the row. */
  #announceInProgress(plan: BatchResume): void {
    const models = this.#routedModels;
    // During a stop operators need only the end, so save the event.
    const upserts = !this.#stop.requested || !patched('one-upsert-at-a-stop');
    this.#display.enterInProgress(models, plan, upserts);
    if (this.#row !== null) return this.#stop.observe(this.#row);
    this.#inProgress = step('projectStatus', {
      batchId: this.#input.batchId,
      ...inProgress(plan, models),
    }).then((row) => this.#stop.observe(row));
  }

  get #routedModels(): string[] {
    return this.#models.filter(({ isUndecided }) => !isUndecided).map(({ plan }) => plan.model);
  }

  async #runLanes({ settings: { queuedWarningMs } }: OpenedBatch, lanes: LaneContext) {
    if (this.#stop.requested) return;
    const chunks = new CancellationScope();
    this.#stop.attach(chunks);
    const running = chunks.run(() => this.#runModels(lanes));
    if (queuedWarningMs === undefined || lanes.waitsAtServer) return void (await running);
    const options = { warningMs: queuedWarningMs, onChange: () => this.#display.refresh() };
    const watch = new QueueWatch(this.#models, options);
    this.#display.watchQueues(() => watch.overdue);
    watch.start();
    await running.finally(() => watch.stop());
  }

  /** Models without a route come last, which gives workers time to announce a route. */
  async #runModels(lanes: LaneContext): Promise<void> {
    const undecided = this.#models.filter(({ isUndecided }) => isUndecided);
    const routed = this.#models.filter((model) => !undecided.includes(model));
    await Promise.allSettled(routed.map((model) => model.run()));
    if (undecided.length === 0) return;
    await settleUndecided(undecided, lanes);
  }

  async #finalizeComplete(opened: OpenedBatch, { nonce }: BatchResume): Promise<FinalizeResult> {
    const { batchId } = this.#input;
    const announces = stepsAnnounce(opened);
    this.#display.enter('finalizing');
    if (!announces) {
      this.#stop.observe(await step('projectStatus', { batchId, status: 'finalizing' }));
    }
    const input = { batchId, nonce, cause: null, announces };
    return finalizeBatch(opened, input, () => this.#counts());
  }

  /** Ends the batch with a stop cause, or because its file cannot run. */
  async #finalizeStopped(opened: OpenedBatch): Promise<FinalizeResult> {
    const { batchId } = this.#input;
    await this.#inProgress;
    const cause = await this.#stop.settled();
    if (cause !== null) {
      this.#display.enterStopping(cause, patched('one-upsert-at-a-stop'));
      await Promise.all(this.#models.map((model) => model.harvest()));
      await this.#awaitReleased(opened, cause);
    }
    log.info('finalizing', { batchId, cause });
    const nonce = this.#plan?.nonce ?? null;
    return finalizeBatch(opened, { batchId, nonce, cause }, () => this.#counts());
  }

  async #awaitReleased(opened: OpenedBatch, cause: StopCause): Promise<void> {
    // If the batch was not validating when this run began, chunks of an earlier run may still be running.
    const isLaterRun = opened.status !== 'validating';
    const isUnaccounted =
      this.#isUnaccounted || this.#models.some(({ progress }) => progress.isUnaccounted);
    if (!isLaterRun && !isUnaccounted) return;
    await awaitReleased(opened, this.#input.batchId, cause);
  }

  #counts(): RequestCounts {
    const sum = (of: (model: ModelRun) => number): number =>
      this.#models.reduce((total, model) => total + of(model), 0);
    return {
      total: this.#plan?.lineCount ?? 0,
      completed: sum(({ progress }) => progress.completed),
      failed: sum(({ progress }) => progress.failed),
    };
  }

  #conclude(ended: FinalizeResult): BatchResult {
    if (ended.kind === 'holes') throw new Error('a stopped batch has no unanswered ranges');
    const { status, counts, outputFileId, errorFileId } = ended;
    const result: BatchResult = { status, ...counts, outputFileId, errorFileId };
    this.#display.showEnd(result, this.#plan);
    if (status !== 'failed') return result;
    // A failed workflow stands out in the list of the UI. Files and terminal record are written already.
    throw ApplicationFailure.create({
      message: 'batch failed',
      type: 'BatchFailed',
      nonRetryable: true,
      details: [result],
    });
  }
}

function runOf(model: ResumedModel, lanes: LaneContext): ModelRun {
  const { delegate } = model;
  if (delegate === undefined) return new ModelLanes(model, lanes);
  return new DelegatedModel({ ...model, delegate }, lanes);
}

/** Whether ingestion and finalization write their phases into the row. */
function stepsAnnounce({ announces }: OpenedBatch): boolean {
  return announces === true && patched(ANNOUNCED);
}

function nothingToDo(status: string): BatchResult {
  log.info('nothing to do', { status });
  return { status, total: 0, completed: 0, failed: 0, outputFileId: null, errorFileId: null };
}
