import { log } from '@temporalio/workflow';
import type { ExecuteChunkResult } from '../activities/contract';
import { summaryText } from '../core/batch/temporal-bounds';
import { chunkSize } from '../core/chunks/chunk-size';
import { EXIT_REASON } from '../core/chunks/exit-reason';
import { laneCount } from '../core/chunks/lanes';
import type { OpenRange } from '../core/chunks/open-ranges';
import type { Priority } from '../core/chunks/priority';
import { priorityOf } from '../core/chunks/priority';
import { suspicionOf } from '../core/chunks/suspicion';
import { firstTimeSliceMs, timeSliceMs } from '../core/chunks/time-slice';
import { executeChunkActivity } from './activity-policies';
import type { ChunkInFlight, OverdueQueue } from './chunk-in-flight';
import { chunkInput } from './chunk-input';
import type { EmptyReturn } from './chunk-outcome';
import { failureType, isEmptyReturn, isSystemFailure, isUntaken } from './chunk-outcome';
import type { ResumedModel } from './contract';
import type { LaneContext } from './lane-context';
import { isHalted, pause } from './lane-context';
import { ModelProgress } from './model-progress';
import { ModelRouting } from './model-routing';
import { QueueTimeout } from './queue-timeout';

/** One chunk of a lane. */
interface LaneChunk {
  readonly range: OpenRange;
  readonly timeSliceMs: number;
  /** Whether it may wait at the server. */
  readonly mayWait: boolean;
}

/**
 * Runs one model's chunks in a few lanes. Each lane runs one chunk after another from the front of the open
 * ranges. Models are independent, so a slow one never holds up a fast one
 * (docs/design/execution.md#lanes).
 *
 * When a model's requests cannot be sent, its lanes do not poll, because each round would add events to the
 * history. If a chunk comes back without progress, its lane lets the next chunk wait at the server for the
 * whole model. The other lanes end and are started again when that chunk has returned
 * (docs/design/execution.md#waiting-at-the-server).
 */
export class ModelLanes {
  readonly plan: ResumedModel;
  readonly progress: ModelProgress;
  /** A chunk failed during a stop, so its worker may still be writing answers. */
  unaccounted = false;
  /** No worker could send the model when the file was read: it is looked up again after all others. */
  isUndecided: boolean;
  readonly #context: LaneContext;
  readonly #lanes = new Map<number, Promise<void>>();
  readonly #inFlight = new Set<ChunkInFlight>();
  readonly #routing: ModelRouting;
  readonly #queueTimeout: QueueTimeout;
  /** The waiting chunk while it is in flight; `next` if the model's next chunk becomes it; null if none. */
  #waitingChunk: ChunkInFlight | 'next' | null = null;
  /** Pauses since a chunk of the model last answered something. */
  #pauses = 0;

  constructor(plan: ResumedModel, context: LaneContext) {
    this.plan = plan;
    this.progress = new ModelProgress(plan);
    this.isUndecided = plan.undecided === true && context.decidesLater;
    this.#context = context;
    const { waitsAtServer, opened } = context;
    this.#queueTimeout = new QueueTimeout(
      waitsAtServer ? opened.settings.queuedWarningMs : undefined,
    );
    const { model, queue, requestTimeoutMs } = plan;
    this.#routing = new ModelRouting({
      model,
      route: { queue, requestTimeoutMs },
      isFresh: context.routesAreFresh && plan.undecided !== true,
      onChange: () => context.onChange(),
    });
  }

  /** Task queue of the next chunk. */
  get queue(): string {
    return this.#routing.route.queue;
  }

  /** Since when no worker can send the model's requests, Unix ms; null while one can. */
  get unroutedSinceMs(): number | null {
    return this.#routing.unroutedSinceMs;
  }

  /** Set while no worker takes the model's chunks from their queue. */
  get overdue(): OverdueQueue | null {
    const { overdueSinceMs: sinceMs } = this.#queueTimeout;
    return sinceMs === null ? null : { model: this.plan.model, queue: this.queue, sinceMs };
  }

  /** Number of lanes that run. */
  get running(): number {
    return this.#lanes.size;
  }

  /** Chunks that have not returned, oldest first. */
  get inFlight(): ReadonlySet<ChunkInFlight> {
    return this.#inFlight;
  }

  /** Runs until every range is answered, a stop is requested, or the run hands over. Never rejects. */
  async run(): Promise<void> {
    this.#startLanes();
    while (this.#lanes.size > 0) {
      await Promise.allSettled([...this.#lanes.values()]);
      if (this.#context.waitsAtServer && !isHalted(this.#context)) this.#startLanes();
    }
  }

  /** What the next run needs to go on. */
  toResume(): ResumedModel {
    const { undecided, ...plan } = this.plan;
    return {
      ...plan,
      ...(undecided === true && this.isUndecided ? { undecided } : {}),
      ...this.#routing.route,
      open: this.progress.open.toArray(),
      completed: this.progress.completed,
      failed: this.progress.failed,
    };
  }

  get #wantedLanes(): number {
    return laneCount({
      totalLines: this.plan.entries,
      recentWorkers: this.progress.recentWorkers,
      lanesPerModel: this.#context.opened.settings.lanesPerModel,
    });
  }

  #startLanes(): void {
    // While a chunk waits at the server, other chunks of the model could not send either.
    if (this.#waitingChunk !== null && this.#waitingChunk !== 'next') return;
    for (let lane = 0; lane < this.#wantedLanes && !this.progress.open.isEmpty; lane++) {
      if (this.#lanes.has(lane)) continue;
      this.#lanes.set(
        lane,
        this.#runLane(lane).finally(() => this.#lanes.delete(lane)),
      );
    }
  }

  async #runLane(lane: number): Promise<void> {
    const { waitsAtServer } = this.#context;
    for (let round = 0; !isHalted(this.#context) && lane < this.#wantedLanes; round++) {
      if (waitsAtServer && !(await this.#isRouted())) return;
      const lanes = this.#wantedLanes;
      const range = this.#takeRange(lanes);
      if (range === null) return;
      const sliceMs = this.#timeSliceMs();
      const first = round === 0;
      const empty = await this.#runChunk(
        range,
        first ? firstTimeSliceMs(sliceMs, lane, lanes) : sliceMs,
      );
      if (empty === null || !waitsAtServer) {
        if (empty !== null) await this.#pause();
        this.#startLanes();
      } else if (!(await this.#afterEmptyReturn(empty))) return;
    }
  }

  #takeRange(lanes: number): OpenRange | null {
    const { open, ratePerSec: lastRatePerSec } = this.progress;
    return open.take(chunkSize({ remaining: open.remaining, lanes, lastRatePerSec }));
  }

  #timeSliceMs(): number {
    const batchAgeMs = Date.now() - this.#context.startedAtMs;
    return timeSliceMs({ batchAgeMs, p95Ms: this.progress.p95Ms ?? 0 });
  }

  /** Waits for a route. False if a stop came first. */
  async #isRouted(): Promise<boolean> {
    try {
      await this.#routing.ensureRoute();
      return !isHalted(this.#context);
    } catch {
      // A stop cancelled the look-up. Do not rethrow, for the reason given in `pause`.
      return false;
    }
  }

  /**
   * Called after a chunk that could not send. Makes the lane's next chunk the waiting chunk, unless the
   * model has one already. False if this lane must end.
   */
  async #afterEmptyReturn({ exitReason, mayWait }: EmptyReturn): Promise<boolean> {
    if (exitReason === EXIT_REASON.unrouted) {
      await this.#pause();
      return true;
    }
    if (this.#waitingChunk !== null) return false;
    // It returned although it may wait: another attempt has its range, or its worker is of an older release.
    if (mayWait && exitReason !== 'queued') await this.#pause();
    if (this.#waitingChunk !== null) return false;
    this.#waitingChunk = 'next';
    return true;
  }

  /** Null if the chunk made progress or failed. */
  async #runChunk(range: OpenRange, sliceMs: number): Promise<EmptyReturn | null> {
    const { requestTimeoutMs } = this.#routing.route;
    const inFlight = { sinceMs: Date.now(), attemptMs: sliceMs + requestTimeoutMs };
    this.#inFlight.add(inFlight);
    const mayWait = this.#waitingChunk === 'next';
    if (mayWait) this.#waitingChunk = inFlight;
    try {
      const result = await this.#execute({ range, timeSliceMs: sliceMs, mayWait });
      this.#record(range, result);
      const isEmpty = isEmptyReturn(range, result, this.#context);
      return isEmpty ? { exitReason: result.left, mayWait } : null;
    } catch (error) {
      const untaken = this.#fail(range, inFlight, error);
      return untaken ? { exitReason: 'queued', mayWait } : null;
    } finally {
      this.#inFlight.delete(inFlight);
      if (this.#waitingChunk === inFlight) this.#waitingChunk = null;
      this.#context.onChange();
    }
  }

  #execute({ range, timeSliceMs, mayWait }: LaneChunk): Promise<ExecuteChunkResult> {
    const { attempts, exclusive, mayBePoison } = suspicionOf(range);
    const { progress, plan } = this;
    const execute = executeChunkActivity({
      settings: this.#context.opened.settings,
      ...this.#routing.route,
      timeSliceMs,
      attempts,
      mayWait,
      scheduleToStartMs: this.#queueTimeout.scheduleToStartMs,
      summary: summaryText(`${plan.model} [${range.from}, ${range.to})`),
    });
    const input = chunkInput(this.#context, plan, {
      ...{ range, timeSliceMs, exclusive, mayBePoison },
      p95Ms: progress.p95Ms,
      priority: this.#priorityOf(range),
      openInModel: progress.unsettled,
      maxCrashes: mayWait ? attempts : undefined,
    });
    return execute(input);
  }

  #priorityOf(range: OpenRange): Priority {
    const { ratePerSec, open } = this.progress;
    const remaining = open.remaining + range.to - range.from;
    return priorityOf({
      nowMs: Date.now(),
      deadlineMs: this.#context.opened.expiresAtMs,
      remainingMs: ratePerSec === null ? null : (remaining / ratePerSec) * 1000,
    });
  }

  #record(range: OpenRange, result: ExecuteChunkResult): void {
    const { left: exitReason, stopCause, answered } = result;
    this.#queueTimeout.onTaken();
    // The worker shuts down, perhaps to change its configuration, or has no gateway for the model any more.
    if (exitReason === EXIT_REASON.drain || exitReason === EXIT_REASON.unrouted) {
      this.#routing.invalidate();
    }
    this.progress.settle(range, result);
    this.progress.learn(result);
    this.progress.trimWorkers(this.#wantedLanes);
    if (answered > 0) this.#pauses = 0;
    if (stopCause !== null) this.#context.stop.request(stopCause);
  }

  /** True if the chunk never began, because no worker took it from its queue. */
  #fail(range: OpenRange, inFlight: ChunkInFlight, error: unknown): boolean {
    const { model } = this.plan;
    const { open } = this.progress;
    if (this.#context.stop.requested) {
      // A chunk that fails during a stop counts as stopped, but its progress is unknown.
      this.unaccounted = true;
      open.giveBack(range);
      return false;
    }
    if (isUntaken(error)) {
      open.giveBack(range);
      log.warn('no worker takes a chunk', { model, queue: this.queue });
      this.#queueTimeout.onExpired(inFlight.sinceMs);
      this.#routing.invalidate();
      return true;
    }
    const type = failureType(error);
    if (isSystemFailure(type)) {
      log.error('batch cannot go on', { type, model });
      open.giveBack(range);
      this.#context.stop.request('failed');
      return false;
    }
    log.warn('chunk failed', { model, from: range.from, to: range.to, type });
    open.giveBackFailed(range);
    return false;
  }

  /**
   * Pauses a lane, longer each time. The pause ends early when a chunk of the model returns with answers,
   * because its permits are free then. A chunk without answers does not end it, or lanes would keep waking
   * each other.
   */
  #pause(): Promise<void> {
    const before = this.progress.answeringChunks;
    return pause(this.#context, this.#pauses++, () => this.progress.answeringChunks !== before);
  }
}
