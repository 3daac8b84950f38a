import { log } from '@temporalio/workflow';
import type { ExecuteChunkResult } from '../activities/contract';
import { summaryText } from '../core/batch/temporal-bounds';
import { EXIT_REASON } from '../core/chunks/exit-reason';
import type { OpenRange } from '../core/chunks/open-ranges';
import type { Priority } from '../core/chunks/priority';
import { priorityOf } from '../core/chunks/priority';
import { suspicionOf } from '../core/chunks/suspicion';
import { executeChunkActivity } from './activity-policies';
import type { ChunkInFlight, OverdueQueue } from './chunk-in-flight';
import { chunkInput } from './chunk-input';
import type { EmptyReturn } from './chunk-outcome';
import { failureType, isEmptyReturn, isSystemFailure, isUntaken } from './chunk-outcome';
import type { ResumedModel } from './contract';
import type { LaneContext } from './lane-context';
import { ModelProgress } from './model-progress';
import type { ModelRouting } from './model-routing';
import { QueueTimeout } from './queue-timeout';

/** What the chunks of one model share. */
export interface ModelChunksOptions {
  readonly plan: ResumedModel;
  readonly context: LaneContext;
  readonly routing: ModelRouting;
  /** Lanes beside two for each worker. */
  readonly spareLanes: number;
}

/** One chunk, about to be scheduled. */
interface ScheduledChunk {
  readonly range: OpenRange;
  readonly timeSliceMs: number;
  /** Whether it may wait at the server. */
  readonly mayWait: boolean;
}

/**
 * Schedules the chunks of one model, each as an activity, and records what became of them. At most one of
 * them may wait at the server (docs/design/execution.md#waiting-at-the-server).
 */
export class ModelChunks {
  readonly progress: ModelProgress;
  readonly #o: ModelChunksOptions;
  readonly #inFlight = new Set<ChunkInFlight>();
  readonly #queueTimeout: QueueTimeout;
  /** The waiting chunk while it is in flight; `next` if the model's next chunk becomes it; null if none. */
  #waiting: ChunkInFlight | 'next' | null = null;

  constructor(options: ModelChunksOptions) {
    this.#o = options;
    const { waitsAtServer, opened } = options.context;
    this.progress = new ModelProgress(options.plan, {
      lanesPerModel: opened.settings.lanesPerModel,
      spareLanes: options.spareLanes,
    });
    this.#queueTimeout = new QueueTimeout(
      waitsAtServer ? opened.settings.queuedWarningMs : undefined,
    );
  }

  /** Chunks that have not returned, oldest first. */
  get inFlight(): ReadonlySet<ChunkInFlight> {
    return this.#inFlight;
  }

  /** Set while no worker takes the model's chunks from their queue. */
  get overdue(): OverdueQueue | null {
    const { plan, routing } = this.#o;
    const { overdueSinceMs: sinceMs } = this.#queueTimeout;
    return sinceMs === null ? null : { model: plan.model, queue: routing.route.queue, sinceMs };
  }

  /** Whether a chunk waits at the server. Other chunks of the model could not send either. */
  get hasWaitingChunk(): boolean {
    return this.#waiting !== null && this.#waiting !== 'next';
  }

  /** False if a chunk waits at the server, or the next one may already. */
  get mayLetNextWait(): boolean {
    return this.#waiting === null;
  }

  /** Lets the next chunk wait at the server. False, without an effect, if it may not. */
  letNextWait(): boolean {
    if (!this.mayLetNextWait) return false;
    this.#waiting = 'next';
    return true;
  }

  /** Null if the chunk made progress or failed. Never rejects. */
  async run(range: OpenRange, timeSliceMs: number): Promise<EmptyReturn | null> {
    const { context, routing } = this.#o;
    const { requestTimeoutMs } = routing.route;
    const inFlight = { sinceMs: Date.now(), attemptMs: timeSliceMs + requestTimeoutMs };
    this.#inFlight.add(inFlight);
    const mayWait = this.#waiting === 'next';
    if (mayWait) this.#waiting = inFlight;
    try {
      const result = await this.#execute({ range, timeSliceMs, mayWait });
      this.#record(range, result);
      const isEmpty = isEmptyReturn(range, result, context);
      return isEmpty ? { exitReason: result.left, mayWait } : null;
    } catch (error) {
      const neverBegan = this.#fail(range, inFlight, error);
      return neverBegan ? { exitReason: 'queued', mayWait } : null;
    } finally {
      this.#inFlight.delete(inFlight);
      if (this.#waiting === inFlight) this.#waiting = null;
      context.onChange();
    }
  }

  #execute({ range, timeSliceMs, mayWait }: ScheduledChunk): Promise<ExecuteChunkResult> {
    const { attempts, exclusive, mayBePoison } = suspicionOf(range);
    const { progress } = this;
    const { plan, context, routing } = this.#o;
    const execute = executeChunkActivity({
      settings: context.opened.settings,
      ...routing.route,
      timeSliceMs,
      attempts,
      mayWait,
      mayBeHeld: progress.mayBeHeld,
      scheduleToStartMs: this.#queueTimeout.scheduleToStartMs,
      summary: summaryText(`${plan.model} [${range.from}, ${range.to})`),
    });
    const input = chunkInput(context, plan, {
      ...{ range, timeSliceMs, exclusive, mayBePoison },
      p95Ms: progress.p95Ms,
      priority: this.#priorityOf(range),
      openInModel: progress.unsettled,
      maxCrashes: mayWait ? attempts : undefined,
      isLast: context.isAllHandedOut(),
    });
    return execute(input);
  }

  #priorityOf(range: OpenRange): Priority {
    const { ratePerSec, open } = this.progress;
    const remaining = open.remaining + range.to - range.from;
    // The rate is that of one chunk, and this one is in flight too.
    const chunks = this.#inFlight.size;
    return priorityOf({
      nowMs: Date.now(),
      deadlineMs: this.#o.context.opened.expiresAtMs,
      remainingMs: ratePerSec === null ? null : (remaining / (ratePerSec * chunks)) * 1000,
    });
  }

  #record(range: OpenRange, result: ExecuteChunkResult): void {
    const { left: exitReason, stopCause } = result;
    const { context, routing } = this.#o;
    this.#queueTimeout.onTaken();
    // The worker shuts down, perhaps to change its configuration, or has no gateway for the model any more.
    if (exitReason === EXIT_REASON.drain || exitReason === EXIT_REASON.unrouted) {
      routing.invalidate();
    }
    this.progress.settle(range, result);
    this.progress.learn(result);
    if (stopCause !== null) context.stop.request(stopCause);
    if (result.ended !== undefined) context.onEnded(result.ended);
  }

  /** True if the chunk never began, because no worker took it from its queue. */
  #fail(range: OpenRange, inFlight: ChunkInFlight, error: unknown): boolean {
    const { plan, context, routing } = this.#o;
    const { model } = plan;
    const { open } = this.progress;
    if (context.stop.requested) {
      // A chunk that fails during a stop counts as stopped, but its progress is unknown.
      this.progress.isUnaccounted = true;
      open.giveBack(range);
      return false;
    }
    if (isUntaken(error)) {
      open.giveBack(range);
      log.warn('no worker takes a chunk', { model, queue: routing.route.queue });
      this.#queueTimeout.onExpired(inFlight.sinceMs);
      routing.invalidate();
      return true;
    }
    const type = failureType(error);
    if (isSystemFailure(type)) {
      log.error('batch cannot go on', { type, model });
      open.giveBack(range);
      context.stop.request('failed');
      return false;
    }
    log.warn('chunk failed', { model, from: range.from, to: range.to, type });
    open.giveBackFailed(range);
    return false;
  }
}
