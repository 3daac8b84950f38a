import {
  ApplicationFailure,
  CancellationScope,
  continueAsNew,
  defineSignal,
  log,
  patched,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  FinalizeResult,
  OpenedBatch,
  UnansweredRange,
  PlannedOrInvalid,
} from '../activities/contract';
import { keywordList } from '../core/batch/temporal-bounds';
import type { StopCause } from '../core/batch/status';
import { isTerminal } from '../core/batch/status';
import type { BatchInput, BatchResult, BatchResume } from './contract';
import { CANCEL_SIGNAL, SEARCH_KEYS } from './contract';
import { Deadline } from './deadline';
import type { BatchPhase } from './details';
import { describeBatch } from './details';
import type { LaneContext } from './model-lanes';
import { ModelLanes } from './model-lanes';
import { finalization, holders, ingestion, lastResort, step } from './proxies';
import type { OverdueQueue } from './queue-watch';
import { QueueWatch } from './queue-watch';
import { StopControl } from './stop';
import { settleUndecided } from './undecided-models';
import { untilStopped } from './until-stopped';

type Planned = PlannedOrInvalid & { kind: 'planned' };

/** How long ingestion may go on under a stop: enough for a file of a few thousand lines. */
const STOPPED_INGESTION_MS = 5_000;

/** Workflows that look models without a route up again before they give up their lines. */
const DECIDES_LATER = 'unrouted-decided-last';

/** Asks a batch to stop; a second time changes nothing. */
export const cancelBatch = defineSignal(CANCEL_SIGNAL);

/**
 * The way of one batch: open → ingest → execute → finalize, and the terminal record.
 *
 * The body runs in a non-cancellable scope, so that whatever the end, what was paid for is delivered.
 * A stop (signal, Cancel in the UI, the deadline, a system error) cancels the chunks alone.
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
  #phase: BatchPhase = 'validating';
  #plan: BatchResume | null;
  #models: ModelLanes[] = [];
  #lanes: LaneContext | null = null;
  #queues: QueueWatch | null = null;
  #inProgress: Promise<void> | null = null;
  readonly #deadline: Deadline;
  #waitsAtServer = false;

  constructor(input: BatchInput, stop: StopControl) {
    this.#input = input;
    this.#stop = stop;
    this.#deadline = new Deadline(stop);
    this.#plan = input.resume ?? null;
  }

  async run(): Promise<BatchResult> {
    const opened = await this.#open();
    if (opened === null) return this.#nothing('missing');
    if (isTerminal(opened.status)) return this.#nothing(opened.status);
    this.#watchDeadline(opened);
    try {
      this.#plan ??= await this.#ingest(opened);
      const ended = this.#plan === null ? null : await this.#execute(opened, this.#plan);
      this.#deadline.cancel();
      return this.#conclude(ended ?? (await this.#finalizeStopped(opened)));
    } finally {
      this.#deadline.cancel();
    }
  }

  /** Waits up to an hour for the row: the API inserts it before it starts us, a restore may be late. */
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

  #watchDeadline({ expiresAtMs, settled, answered }: OpenedBatch): void {
    if (settled === true) return;
    if (answered === true) this.#deadline.hold();
    // The deadline had already passed when the workflow started.
    if (Date.now() >= expiresAtMs && patched('expired-when-opened')) this.#deadline.pass();
    else this.#deadline.watch(expiresAtMs);
  }

  /**
   * Plans the file. Under a stop a small one still gets its plan, so that every line gets its code; a
   * batch whose ingestion takes longer, or never ends, is ended without. Null: there is no plan.
   */
  async #ingest(opened: OpenedBatch): Promise<BatchResume | null> {
    const { batchId } = this.#input;
    const decidesLater = patched(DECIDES_LATER) ? { decidesLater: true } : {};
    const ingest = () => ingestion(opened.settings).ingest({ batchId, ...decidesLater });
    try {
      const outcome = patched('stop-ends-ingestion')
        ? await untilStopped(this.#stop, STOPPED_INGESTION_MS, ingest)
        : await ingest();
      if (outcome === null) log.info('ingestion cut short by a stop', { batchId });
      return outcome?.kind === 'planned' ? wholeOf(outcome) : null;
    } catch (error) {
      log.error('ingestion failed', { error: String(error) });
      this.#stop.request('failed');
      return null;
    }
  }

  /** Runs chunks until every line is settled; null when a stop came first. */
  async #execute(opened: OpenedBatch, plan: BatchResume): Promise<FinalizeResult | null> {
    this.#prepareModels(opened, plan);
    this.#announceInProgress(plan);
    for (let isSettled = opened.settled === true || opened.answered === true; ; isSettled = false) {
      if (!isSettled) await this.#runLanes(opened);
      await this.#inProgress;
      if (this.#stop.requested) return null;
      if (this.#handingOver(opened)) return this.#handOver(plan);
      // Every line is settled: from here on time can no longer expire the batch.
      if (patched('deadline-until-done')) this.#deadline.hold();
      else this.#deadline.cancel();
      const result = await this.#finalizeComplete(opened, plan);
      if (result.kind === 'done') return result;
      this.#deadline.release();
      if (this.#stop.requested) return null;
      // A run that began with every line settled has all ranges open still.
      if (!isSettled) this.#reopen(result.holes);
    }
  }

  #reopen(holes: readonly UnansweredRange[]): void {
    for (const hole of holes) {
      this.#models.find((model) => model.plan.safe === hole.safe)?.reopen(hole);
    }
  }

  #prepareModels(opened: OpenedBatch, plan: BatchResume): void {
    const waitsAtServer = patched('waits-at-the-server');
    this.#waitsAtServer = waitsAtServer;
    const hasUndecided = plan.models.some(({ undecided }) => undecided === true);
    const lanes: LaneContext = {
      batchId: this.#input.batchId,
      nonce: plan.nonce,
      opened,
      stop: this.#stop,
      startedAtMs: startOf(plan),
      waitsAtServer,
      routesAreFresh: this.#input.resume === undefined,
      decidesLater: hasUndecided && patched(DECIDES_LATER),
      handingOver: () => this.#handingOver(opened),
      onRouted: () => this.#announceRouted(),
      onChange: () => this.#describe(),
    };
    this.#lanes = lanes;
    this.#models = plan.models.map((model) => new ModelLanes(model, lanes));
  }

  /** Not awaited: the first request must not wait for a projection. */
  #announceInProgress(plan: BatchResume): void {
    this.#phase = 'in_progress';
    const models = this.#routedModels;
    const areAllRouted = plan.unroutedLines === 0 && models.length === plan.models.length;
    // Under a stop the end alone is of interest.
    if (!this.#stop.requested || !patched('one-upsert-at-a-stop')) {
      upsertSearchAttributes([
        { key: SEARCH_KEYS.phase, value: 'in_progress' },
        { key: SEARCH_KEYS.models, value: keywordList(models) },
        { key: SEARCH_KEYS.requests, value: plan.lineCount },
      ]);
    }
    this.#describe();
    this.#inProgress = step('projectStatus', {
      batchId: this.#input.batchId,
      status: 'in_progress',
      total: plan.lineCount,
      model: models.length === 1 && areAllRouted ? (models[0] ?? null) : null,
      models,
    }).then((row) => this.#stop.observe(row));
  }

  get #routedModels(): string[] {
    return this.#models.filter(({ isUndecided }) => !isUndecided).map(({ plan }) => plan.model);
  }

  #announceRouted(): void {
    upsertSearchAttributes([{ key: SEARCH_KEYS.models, value: keywordList(this.#routedModels) }]);
    this.#describe();
  }

  async #runLanes({ settings: { queuedWarningMs } }: OpenedBatch): Promise<void> {
    if (this.#stop.requested) return;
    const chunks = new CancellationScope();
    this.#stop.attach(chunks);
    const running = chunks.run(() => this.#runModels());
    if (queuedWarningMs === undefined || this.#waitsAtServer) return void (await running);
    const options = { warningMs: queuedWarningMs, onChange: () => this.#describe() };
    this.#queues = new QueueWatch(this.#models, options);
    this.#queues.start();
    await running.finally(() => this.#queues?.stop());
  }

  /** Models without a route come last, so that a worker has had all the time there is to announce them. */
  async #runModels(): Promise<void> {
    const undecided = this.#models.filter(({ isUndecided }) => isUndecided);
    const routed = this.#models.filter((model) => !undecided.includes(model));
    await Promise.allSettled(routed.map((model) => model.run()));
    const lanes = this.#lanes;
    if (lanes === null || undecided.length === 0) return;
    await settleUndecided(undecided, lanes);
  }

  #handingOver(opened: OpenedBatch): boolean {
    const { historyLength, continueAsNewSuggested } = workflowInfo();
    const limit = opened.settings.historyEvents;
    const long = limit === null ? continueAsNewSuggested : historyLength >= limit;
    return long && this.#models.some((model) => !model.open.isEmpty);
  }

  /** Activities do not survive continue-as-new; all chunks have returned by now. */
  #handOver(plan: BatchResume): Promise<never> {
    return continueAsNew<typeof batchWorkflow>({
      batchId: this.#input.batchId,
      resume: {
        ...plan,
        models: this.#models.map((model) => model.toResume()),
        startedAtMs: startOf(plan),
      },
    });
  }

  async #finalizeComplete(opened: OpenedBatch, plan: BatchResume): Promise<FinalizeResult> {
    const { batchId } = this.#input;
    this.#enterPhase('finalizing');
    this.#stop.observe(await step('projectStatus', { batchId, status: 'finalizing' }));
    return this.#finalize(opened, plan.nonce, null);
  }

  /** The end under a cause, or of a file that cannot run. */
  async #finalizeStopped(opened: OpenedBatch): Promise<FinalizeResult> {
    const { batchId } = this.#input;
    await this.#inProgress;
    const cause = await this.#stop.settled();
    if (cause !== null) {
      this.#enterStopping(cause);
      await this.#awaitReleased(opened, cause);
    }
    log.info('finalizing', { batchId, cause });
    return this.#finalize(opened, this.#plan?.nonce ?? null, cause);
  }

  async #awaitReleased(opened: OpenedBatch, cause: StopCause): Promise<void> {
    const { settings } = opened;
    const graceMs = cause === 'expired' ? settings.expiryGraceMs : settings.cancelGraceMs;
    // Not validating when this run began: chunks of an earlier run may still be at work.
    const earlierRun = opened.status !== 'validating';
    if (!earlierRun && !this.#models.some((model) => model.unaccounted)) return;
    const { batchId } = this.#input;
    await holders(settings)
      .awaitReleased({ batchId, graceMs })
      .catch((error: unknown) => log.warn('holders unknown', { error: String(error) }));
  }

  async #finalize(
    opened: OpenedBatch,
    nonce: string | null,
    cause: StopCause | null,
  ): Promise<FinalizeResult> {
    const { batchId } = this.#input;
    try {
      const windowMs = opened.settings.finalizeWindowMs;
      return await finalization(opened.settings).finalize({ batchId, nonce, cause, windowMs });
    } catch (error) {
      log.error('finalization given up', { error: String(error) });
      const row = await lastResort.recordUnfinalized({ batchId, cause });
      return {
        kind: 'done',
        status: isTerminal(row.status) ? row.status : 'failed',
        counts: { total: this.#plan?.lineCount ?? 0, ...this.#sums() },
        outputFileId: null,
        errorFileId: null,
      };
    }
  }

  #conclude(ended: FinalizeResult): BatchResult {
    if (ended.kind === 'holes') throw new Error('a stopped batch cannot have holes');
    const { status, counts, outputFileId, errorFileId } = ended;
    upsertSearchAttributes([{ key: SEARCH_KEYS.phase, value: status }]);
    const result: BatchResult = { status, ...counts, outputFileId, errorFileId };
    setCurrentDetails(
      `**${status}**: ${counts.total} requests, ${counts.completed} completed, ${counts.failed} failed`,
    );
    if (status !== 'failed') return result;
    // Red in the list of the UI; by now files and record are there.
    throw ApplicationFailure.create({
      message: 'batch failed',
      type: 'BatchFailed',
      nonRetryable: true,
      details: [result],
    });
  }

  #nothing(status: string): BatchResult {
    log.info('nothing to do', { status });
    return { status, total: 0, completed: 0, failed: 0, outputFileId: null, errorFileId: null };
  }

  #enterPhase(phase: BatchPhase): void {
    this.#phase = phase;
    upsertSearchAttributes([{ key: SEARCH_KEYS.phase, value: phase }]);
    this.#describe();
  }

  #enterStopping(cause: StopCause): void {
    const reason = { key: SEARCH_KEYS.stopReason, value: cause };
    if (!patched('one-upsert-at-a-stop')) {
      this.#enterPhase('stopping');
      upsertSearchAttributes([reason]);
      return;
    }
    this.#phase = 'stopping';
    upsertSearchAttributes([{ key: SEARCH_KEYS.phase, value: this.#phase }, reason]);
    this.#describe();
  }

  #describe(): void {
    setCurrentDetails(
      describeBatch({
        phase: this.#phase,
        stopReason: this.#stop.cause,
        total: this.#plan?.lineCount ?? 0,
        unroutedLines: this.#plan?.unroutedLines ?? 0,
        models: this.#models,
        overdue: this.#queues?.overdue ?? this.#overdueQueues(),
      }),
    );
  }

  #overdueQueues(): OverdueQueue[] {
    return this.#models.map(({ overdue }) => overdue).filter((queue) => queue !== null);
  }

  #sums(): { completed: number; failed: number } {
    return {
      completed: this.#models.reduce((sum, model) => sum + model.completed, 0),
      failed: this.#models.reduce((sum, model) => sum + model.failed, 0),
    };
  }
}

/** When the batch began to run. A later run would otherwise take its own start for it. */
function startOf({ startedAtMs }: BatchResume): number {
  return startedAtMs ?? workflowInfo().startTime.getTime();
}

/** A plan of which nothing is answered yet. */
function wholeOf({ nonce, lineCount, models, unroutedLines }: Planned): BatchResume {
  return {
    nonce,
    lineCount,
    unroutedLines,
    models: models.map((model) => ({
      ...model,
      open: [{ from: 0, to: model.entries }],
      completed: 0,
      failed: 0,
    })),
  };
}
