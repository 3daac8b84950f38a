import { condition, log } from '@temporalio/workflow';
import type { ExecuteChunkResult, OpenedBatch } from '../activities/contract';
import { summaryText } from '../core/batch/temporal-bounds';
import { timeSliceMs, chunkSize, firstTimeSliceMs } from '../core/chunks/chunk-size';
import { laneCount } from '../core/chunks/lanes';
import type { OpenRange } from '../core/chunks/open-ranges';
import { OpenRanges } from '../core/chunks/open-ranges';
import { priorityOf } from '../core/chunks/priority';
import type { IdleChunk } from './chunk-outcome';
import { failureType, isIdle, isUntaken } from './chunk-outcome';
import type { ResumedModel } from './contract';
import { ModelRouting } from './model-routing';
import { chunk } from './proxies';
import { QueueTimeout } from './queue-timeout';
import type { OverdueQueue } from './queue-watch';
import type { StopControl } from './stop';

/** A chunk that was handed out and has not returned; times in Unix ms. */
export interface ChunkInFlight {
  readonly sinceMs: number;
  /** How long an attempt that began at once could take. */
  readonly attemptMs: number;
}

/** What all models of a batch share while they execute. */
export interface LaneContext {
  readonly batchId: string;
  readonly nonce: string;
  readonly opened: OpenedBatch;
  readonly stop: StopControl;
  /** When this batch began, for the length of boxes. */
  readonly startedAtMs: number;
  /**
   * Waiting costs no history: one chunk of a model waits at the server for all, routes are looked up
   * again, and a chunk comes back from a queue that nobody serves. False in older histories.
   */
  readonly waitsAtServer: boolean;
  /** The routes of the plan were made in this run. */
  readonly routesAreFresh: boolean;
  /** Models without a route are looked up again before their lines are given up. */
  readonly decidesLater: boolean;
  /** True once the history is long enough to go on in a new run: lanes take no further chunk. */
  handingOver(): boolean;
  /** Called when a model without a route has one by now. */
  onRouted(): void;
  /** Called after each chunk: details for operators. */
  onChange(): void;
}

/** More crashes than this point at a line, not at a worker (execution §3, poison). */
const ATTEMPTS = 3;
/** Half of a range that failed so often: what is alone in it is proven later, here time counts. */
const HALF_ATTEMPTS = 1;

const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/**
 * Failures that no retry and no smaller chunk can mend: the batch ends `failed` with what it has
 * (execution §4).
 */
const SYSTEM_FAILURES = ['input_missing', 'plan_unreadable', 'object_corrupt', 'config_invalid'];

/**
 * One model's chunks: a few lanes, each running one chunk after another from the front of the open
 * ranges (guided self-scheduling, execution §3). Models know nothing of each other, so a slow one
 * never holds up a fast one.
 */
export class ModelLanes {
  readonly plan: ResumedModel;
  readonly open: OpenRanges;
  completed: number;
  failed: number;
  /** A chunk did not return by itself during a stop: its worker may still be writing answers. */
  unaccounted = false;
  /** No worker could send the model when the file was read: it is looked up again after all others. */
  isUndecided: boolean;
  lastExit: ExecuteChunkResult['left'] | 'queued' = 'queued';
  ratePerSec: number | null = null;
  p95Ms: number | null = null;
  readonly #context: LaneContext;
  readonly #lanes = new Map<number, Promise<void>>();
  readonly #out = new Set<ChunkInFlight>();
  readonly #routing: ModelRouting;
  /** The chunk that may wait at the server, while it is out; with `due` the next one will be it. */
  #waiter: ChunkInFlight | 'due' | null = null;
  readonly #patience: QueueTimeout;
  readonly #workers: string[] = [];
  #returned = 0;
  #emptyReturns = 0;

  constructor(plan: ResumedModel, context: LaneContext) {
    this.plan = plan;
    this.open = new OpenRanges(plan.open);
    this.completed = plan.completed;
    this.failed = plan.failed;
    this.isUndecided = plan.undecided === true && context.decidesLater;
    this.#context = context;
    const { waitsAtServer, opened } = context;
    this.#patience = new QueueTimeout(waitsAtServer ? opened.settings.queuedWarningMs : undefined);
    const { model, queue, requestTimeoutMs } = plan;
    this.#routing = new ModelRouting({
      model,
      route: { queue, requestTimeoutMs },
      isFresh: context.routesAreFresh && plan.undecided !== true,
      onChange: () => context.onChange(),
    });
  }

  /** Task queue that the next chunk goes to. */
  get queue(): string {
    return this.#routing.route.queue;
  }

  /** Since when no worker can send the model's requests, Unix ms; null while one can. */
  get unroutedSinceMs(): number | null {
    return this.#routing.unroutedSinceMs;
  }

  /** Set while nobody takes the model's chunks from their queue. */
  get overdue(): OverdueQueue | null {
    const { overdueSinceMs: sinceMs } = this.#patience;
    return sinceMs === null ? null : { model: this.plan.model, queue: this.queue, sinceMs };
  }

  get running(): number {
    return this.#lanes.size;
  }

  /** Chunks that have not returned yet, oldest first. */
  get out(): ReadonlySet<ChunkInFlight> {
    return this.#out;
  }

  /** Runs until every range is answered, a stop is asked for, or the run hands over. Never rejects. */
  async run(): Promise<void> {
    this.#startLanes();
    while (this.#lanes.size > 0) {
      await Promise.allSettled([...this.#lanes.values()]);
      if (this.#context.waitsAtServer && !this.#halted) this.#startLanes();
    }
  }

  /** Puts ranges back that finalization found without an answer. */
  reopen(range: OpenRange): void {
    this.open.giveBack(range);
  }

  /** What the next run needs to go on. */
  toResume(): ResumedModel {
    const { undecided, ...plan } = this.plan;
    return {
      ...plan,
      ...(undecided === true && this.isUndecided ? { undecided } : {}),
      ...this.#routing.route,
      open: this.open.toArray(),
      completed: this.completed,
      failed: this.failed,
    };
  }

  get #halted(): boolean {
    return this.#context.stop.requested || this.#context.handingOver();
  }

  get #wantedLanes(): number {
    return laneCount({
      totalLines: this.plan.entries,
      recentWorkers: this.#workers,
      lanesPerModel: this.#context.opened.settings.lanesPerModel,
    });
  }

  #startLanes(): void {
    // Beside a chunk that waits for a permit no other one would get one.
    if (this.#waiter !== null && this.#waiter !== 'due') return;
    for (let lane = 0; lane < this.#wantedLanes && !this.open.isEmpty; lane++) {
      if (this.#lanes.has(lane)) continue;
      this.#lanes.set(
        lane,
        this.#runLane(lane).finally(() => this.#lanes.delete(lane)),
      );
    }
  }

  async #runLane(lane: number): Promise<void> {
    for (let round = 0; !this.#halted && lane < this.#wantedLanes; round++) {
      if (this.#context.waitsAtServer && !(await this.#isRouted())) return;
      const lanes = this.#wantedLanes;
      const range = this.open.take(
        chunkSize({ remaining: this.open.remaining, lanes, lastRatePerSec: this.ratePerSec }),
      );
      if (range === null) return;
      const box = timeSliceMs({
        batchAgeMs: Date.now() - this.#context.startedAtMs,
        p95Ms: this.p95Ms ?? 0,
      });
      const idle = await this.#runChunk(
        range,
        round === 0 ? firstTimeSliceMs(box, lane, lanes) : box,
      );
      if (idle === null || !this.#context.waitsAtServer) {
        if (idle !== null) await this.#pause();
        this.#startLanes();
      } else if (!(await this.#afterIdle(idle))) return;
    }
  }

  /** False when a stop came first. */
  async #isRouted(): Promise<boolean> {
    try {
      await this.#routing.settle();
      return !this.#halted;
    } catch {
      // As in a pause: nobody may be waiting for this lane yet.
      return false;
    }
  }

  /**
   * Nothing could be sent: one chunk of the model waits for all, at the server, and the other lanes end
   * until it has returned. False: this lane ends.
   */
  async #afterIdle({ left, waited }: IdleChunk): Promise<boolean> {
    if (left === 'unrouted') {
      await this.#pause();
      return true;
    }
    if (this.#waiter !== null) return false;
    // It returned although it may wait: its range is another's, or its worker is of an older version.
    if (waited && left !== 'queued') await this.#pause();
    if (this.#waiter !== null) return false;
    this.#waiter = 'due';
    return true;
  }

  /** Null unless the chunk came back as it went: then why. */
  async #runChunk(range: OpenRange, box: number): Promise<IdleChunk | null> {
    const { requestTimeoutMs } = this.#routing.route;
    const out = { sinceMs: Date.now(), attemptMs: box + requestTimeoutMs };
    this.#out.add(out);
    const mayWait = this.#waiter === 'due';
    if (mayWait) this.#waiter = out;
    try {
      const result = await this.#execute(range, box, mayWait);
      this.#record(range, result);
      return isIdle(range, result, this.#context) ? { left: result.left, waited: mayWait } : null;
    } catch (error) {
      const isUntaken = this.#fail(range, out, error);
      return isUntaken ? { left: 'queued', waited: mayWait } : null;
    } finally {
      this.#out.delete(out);
      if (this.#waiter === out) this.#waiter = null;
      this.#context.onChange();
    }
  }

  #execute(range: OpenRange, box: number, mayWait: boolean): Promise<ExecuteChunkResult> {
    const { batchId, nonce, opened, waitsAtServer } = this.#context;
    const { model, safe } = this.plan;
    const { queue, requestTimeoutMs } = this.#routing.route;
    const remaining = this.open.remaining + range.to - range.from;
    const priority = priorityOf({
      nowMs: Date.now(),
      deadlineMs: opened.expiresAtMs,
      remainingMs: this.ratePerSec === null ? null : (remaining / this.ratePerSec) * 1000,
    });
    // Halved down to one line: it runs alone; has that failed (three attempts), the chunk may take it
    // for the cause, if the journal bears that out.
    const isSuspect = range.failures !== undefined;
    const solo = isSuspect && range.to - range.from === 1;
    const poison = solo && (range.failures ?? 0) > 0;
    const attempts = isSuspect && !solo ? HALF_ATTEMPTS : ATTEMPTS;
    return chunk({
      settings: opened.settings,
      queue,
      boxMs: box,
      requestTimeoutMs,
      attempts,
      mayWait,
      queuedMs: this.#patience.scheduleToStartMs,
      summary: summaryText(`${model} [${range.from}, ${range.to})`),
    }).executeChunk({
      batchId,
      planNonce: nonce,
      tenant: opened.tenant,
      endpoint: opened.endpoint,
      inputKey: opened.inputKey ?? '',
      model,
      safe,
      from: range.from,
      to: range.to,
      deadlineMs: opened.expiresAtMs,
      boxMs: box,
      p95Ms: this.p95Ms,
      priority,
      openInModel: this.plan.entries - this.completed - this.failed,
      ...(solo ? { solo } : {}),
      ...(poison ? { poison } : {}),
      ...(waitsAtServer ? { reroutes: true } : {}),
      ...(mayWait ? { mayWait, maxDeaths: attempts } : {}),
      ...(opened.passesHeaders === true ? { passesHeaders: true } : {}),
    });
  }

  #record(range: OpenRange, result: ExecuteChunkResult): void {
    this.#patience.taken();
    // Its worker goes down, perhaps for another configuration, or has one already.
    if (result.left === 'drain' || result.left === 'unrouted') this.#routing.doubt();
    this.open.giveBack({ from: result.next, to: range.to });
    this.completed += result.completed;
    this.failed += result.failed;
    this.lastExit = result.left;
    if (result.ratePerSec !== null) this.ratePerSec = result.ratePerSec;
    if (result.p95Ms !== null) this.p95Ms = result.p95Ms;
    if (result.answered > 0) {
      this.#emptyReturns = 0;
      this.#returned++;
    }
    this.#workers.push(result.worker);
    if (this.#workers.length > this.#wantedLanes) this.#workers.shift();
    if (result.stopCause !== null) {
      this.#context.stop.observe({
        found: true,
        status: 'in_progress',
        stopCause: result.stopCause,
      });
    }
  }

  /**
   * While stopping, a failed chunk is just a stopped one whose progress is unknown. True where the chunk
   * never began, for nobody took it from its queue.
   */
  #fail(range: OpenRange, out: ChunkInFlight, error: unknown): boolean {
    if (this.#context.stop.requested) {
      this.unaccounted = true;
      this.open.giveBack(range);
      return false;
    }
    if (isUntaken(error)) {
      this.open.giveBack(range);
      this.#missWorker(out);
      return true;
    }
    const type = failureType(error);
    if (type !== null && SYSTEM_FAILURES.includes(type)) {
      log.error('batch cannot go on', { type, model: this.plan.model });
      this.open.giveBack(range);
      this.#context.stop.request('failed');
      return false;
    }
    log.warn('chunk failed', { model: this.plan.model, from: range.from, to: range.to, type });
    this.open.giveBackFailed(range);
    return false;
  }

  /** Nobody took the chunk from its queue: the model may have another one by now. */
  #missWorker({ sinceMs }: ChunkInFlight): void {
    log.warn('nobody takes a chunk', { model: this.plan.model, queue: this.queue });
    this.#patience.expired(sinceMs);
    this.#routing.doubt();
  }

  /**
   * Nothing could be sent: wait, longer each time, or until a chunk of this model has given its
   * permits back. One that had none itself wakes nobody: lanes would keep waking each other.
   */
  async #pause(): Promise<void> {
    const returned = this.#returned;
    const pauseMs = Math.min(PAUSE_MIN_MS * 2 ** this.#emptyReturns++, PAUSE_MAX_MS);
    try {
      await condition(() => this.#halted || this.#returned !== returned, pauseMs);
    } catch {
      // A stop cancels the pause. A lane that was started late has nobody yet who awaits it: thrown
      // on, this would be an unhandled rejection, which fails the workflow task again and again.
    }
  }
}
