import { ApplicationFailure, condition, log, patched } from '@temporalio/workflow';
import type { ExecuteChunkResult, OpenedBatch } from '../activities/types';
import { summaryText } from '../core/batch/temporal-bounds';
import { boxMs, chunkSize, firstBoxMs } from '../core/flow/chunk-size';
import { laneCount } from '../core/flow/lanes';
import type { Range } from '../core/flow/open-ranges';
import { OpenRanges } from '../core/flow/open-ranges';
import { priorityOf } from '../core/flow/priority';
import type { ResumedModel } from './contract';
import { chunk } from './proxies';
import type { StopControl } from './stop';

/** A chunk that was handed out and has not returned; times in Unix ms. */
export interface ChunkOut {
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
  /** True once the history is long enough to go on in a new run: lanes take no further chunk. */
  handingOver(): boolean;
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
  lastLeave: ExecuteChunkResult['left'] | 'queued' = 'queued';
  ratePerSec: number | null = null;
  p95Ms: number | null = null;
  readonly #context: LaneContext;
  readonly #lanes = new Map<number, Promise<void>>();
  readonly #out = new Set<ChunkOut>();
  readonly #workers: string[] = [];
  #returned = 0;
  #emptyReturns = 0;

  constructor(plan: ResumedModel, context: LaneContext) {
    this.plan = plan;
    this.open = new OpenRanges(plan.open);
    this.completed = plan.completed;
    this.failed = plan.failed;
    this.#context = context;
  }

  get running(): number {
    return this.#lanes.size;
  }

  /** Chunks that have not returned yet, oldest first. */
  get out(): ReadonlySet<ChunkOut> {
    return this.#out;
  }

  /** Runs until every range is answered, a stop is asked for, or the run hands over. Never rejects. */
  async run(): Promise<void> {
    this.#startLanes();
    while (this.#lanes.size > 0) await Promise.allSettled([...this.#lanes.values()]);
  }

  /** Puts ranges back that finalization found without an answer. */
  reopen(range: Range): void {
    this.open.giveBack(range);
  }

  /** What the next run needs to go on. */
  toResume(): ResumedModel {
    return {
      ...this.plan,
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
      const lanes = this.#wantedLanes;
      const range = this.open.take(
        chunkSize({ remaining: this.open.remaining, lanes, lastRatePerSec: this.ratePerSec }),
      );
      if (range === null) return;
      const box = boxMs({
        batchAgeMs: Date.now() - this.#context.startedAtMs,
        p95Ms: this.p95Ms ?? 0,
      });
      const result = await this.#runChunk(range, round === 0 ? firstBoxMs(box, lane, lanes) : box);
      if (result?.answered === 0 && result.next < range.to && !handsOver(result)) {
        await this.#pause();
      }
      this.#startLanes();
    }
  }

  async #runChunk(range: Range, box: number): Promise<ExecuteChunkResult | null> {
    const out = { sinceMs: Date.now(), attemptMs: box + this.plan.requestTimeoutMs };
    this.#out.add(out);
    try {
      const result = await this.#execute(range, box);
      this.#record(range, result);
      return result;
    } catch (error) {
      this.#fail(range, error);
      return null;
    } finally {
      this.#out.delete(out);
      this.#context.onChange();
    }
  }

  #execute(range: Range, box: number): Promise<ExecuteChunkResult> {
    const { batchId, nonce, opened } = this.#context;
    const { model, safe, queue, requestTimeoutMs } = this.plan;
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
    return chunk({
      settings: opened.settings,
      queue,
      boxMs: box,
      requestTimeoutMs,
      attempts: isSuspect && !solo ? HALF_ATTEMPTS : ATTEMPTS,
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
      ...(opened.passesHeaders === true ? { passesHeaders: true } : {}),
    });
  }

  #record(range: Range, result: ExecuteChunkResult): void {
    this.open.giveBack({ from: result.next, to: range.to });
    this.completed += result.completed;
    this.failed += result.failed;
    this.lastLeave = result.left;
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

  /** While stopping, a failed chunk is just a stopped one whose progress is unknown (temporal §0.3). */
  #fail(range: Range, error: unknown): void {
    if (this.#context.stop.requested) {
      this.unaccounted = true;
      this.open.giveBack(range);
      return;
    }
    const type = failureType(error);
    if (type !== null && SYSTEM_FAILURES.includes(type)) {
      log.error('batch cannot go on', { type, model: this.plan.model });
      this.open.giveBack(range);
      this.#context.stop.request('failed');
      return;
    }
    log.warn('chunk failed', { model: this.plan.model, from: range.from, to: range.to, type });
    this.open.giveBackFailed(range);
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

/** A worker that goes down takes no further chunk: whoever takes the next one can begin at once. */
function handsOver({ left }: ExecuteChunkResult): boolean {
  return left === 'drain' && patched('no-pause-after-drain');
}

function failureType(error: unknown): string | null {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof ApplicationFailure ? (cause.type ?? null) : null;
}
