import { patched } from '@temporalio/workflow';
import { chunkSize, FIRST_ROUNDS, firstChunkSize } from '../core/chunks/chunk-size';
import { EXIT_REASON } from '../core/chunks/exit-reason';
import { hasLanes, SPARE_LANES } from '../core/chunks/lanes';
import type { OpenRange } from '../core/chunks/open-ranges';
import { firstTimeSliceMs, timeSliceMs } from '../core/chunks/time-slice';
import type { ChunkInFlight, OverdueQueue } from './chunk-in-flight';
import type { EmptyReturn } from './chunk-outcome';
import type { ResumedModel } from './contract';
import type { LaneContext } from './lane-context';
import { isHalted, pause } from './lane-context';
import { ModelChunks } from './model-chunks';
import type { ModelProgress } from './model-progress';
import type { ModelRun } from './model-run';
import { ModelRouting } from './model-routing';

/** Patch id of workflows whose lanes begin with chunks of different sizes. */
const STAGGERED = 'staggered-first-chunks';
/** Patch id of workflows with {@link SPARE_LANES}, whose lanes begin with large chunks. */
const SPARES = 'four-spare-lanes';
/** {@link SPARE_LANES} of older releases. */
const SPARE_LANES_BEFORE = 2;

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
export class ModelLanes implements ModelRun {
  readonly plan: ResumedModel;
  /** No worker could send the model when the file was read: it is looked up again after all others. */
  isUndecided: boolean;
  readonly #context: LaneContext;
  readonly #lanes = new Map<number, Promise<void>>();
  readonly #routing: ModelRouting;
  readonly #chunks: ModelChunks;
  /** Fixed for this run: a run of an older release goes on as it began. */
  readonly #hasSpares: boolean;
  /** Pauses since a chunk of the model last answered something. */
  #pauses = 0;
  /** {@link ModelProgress.answeringChunks} at the latest pause. */
  #answersAtPause = 0;

  constructor(plan: ResumedModel, context: LaneContext) {
    this.plan = plan;
    this.isUndecided = plan.undecided === true && context.decidesLater;
    this.#context = context;
    const { model, queue, requestTimeoutMs } = plan;
    this.#routing = new ModelRouting({
      model,
      endpoint: context.opened.endpoint,
      route: { queue, requestTimeoutMs },
      isFresh: context.routesAreFresh && plan.undecided !== true,
      onChange: () => context.onChange(),
    });
    this.#hasSpares = hasLanes(plan.entries) && patched(SPARES);
    const spareLanes = this.#hasSpares ? SPARE_LANES : SPARE_LANES_BEFORE;
    this.#chunks = new ModelChunks({ plan, context, routing: this.#routing, spareLanes });
  }

  get progress(): ModelProgress {
    return this.#chunks.progress;
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
    return this.#chunks.overdue;
  }

  /** Number of lanes that run. */
  get running(): number {
    return this.#lanes.size;
  }

  /** Chunks that have not returned, oldest first. */
  get inFlight(): ReadonlySet<ChunkInFlight> {
    return this.#chunks.inFlight;
  }

  /** Runs until every range is answered, a stop is requested, or the run hands over. Never rejects. */
  async run(): Promise<void> {
    this.#startLanes();
    while (this.#lanes.size > 0) {
      await Promise.allSettled([...this.#lanes.values()]);
      if (this.#context.waitsAtServer && !isHalted(this.#context)) this.#startLanes();
    }
  }

  /** Nothing is left to collect: chunks are awaited, and journal what is in flight. */
  harvest(): Promise<void> {
    return Promise.resolve();
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

  #startLanes(): void {
    const { progress, hasWaitingChunk } = this.#chunks;
    if (hasWaitingChunk) return;
    for (let lane = 0; lane < progress.wantedLanes && !progress.open.isEmpty; lane++) {
      if (this.#lanes.has(lane)) continue;
      this.#lanes.set(
        lane,
        this.#runLane(lane).finally(() => this.#lanes.delete(lane)),
      );
    }
  }

  async #runLane(lane: number): Promise<void> {
    const { waitsAtServer } = this.#context;
    const { progress } = this;
    for (let round = 0; !isHalted(this.#context) && lane < progress.wantedLanes; round++) {
      if (waitsAtServer && !(await this.#isRouted())) return;
      const lanes = progress.wantedLanes;
      const first = round === 0;
      const range = this.#takeRange(lanes, first ? lane : null);
      if (range === null) return;
      const sliceMs = this.#timeSliceMs();
      const empty = await this.#chunks.run(
        range,
        first ? firstTimeSliceMs(sliceMs, lane, lanes) : sliceMs,
      );
      if (empty === null || !waitsAtServer) {
        if (empty !== null) await this.#pause();
        this.#startLanes();
      } else if (!(await this.#afterEmptyReturn(empty))) return;
    }
  }

  /** @param firstOf the lane, for its first chunk */
  #takeRange(lanes: number, firstOf: number | null): OpenRange | null {
    const { open, ratePerSec: lastRatePerSec } = this.progress;
    const { remaining } = open;
    const first = firstOf !== null && this.#hasSpares ? { rounds: FIRST_ROUNDS } : {};
    const size = chunkSize({ remaining, lanes, lastRatePerSec, ...first });
    const isStaggered = firstOf !== null && lanes > 1 && patched(STAGGERED);
    return open.take(isStaggered ? firstChunkSize(size, firstOf, lanes) : size);
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
    if (!this.#chunks.mayLetNextWait) return false;
    // It returned although it may wait: another attempt has its range, or its worker is of an older release.
    if (mayWait && exitReason !== 'queued') await this.#pause();
    return this.#chunks.letNextWait();
  }

  /**
   * Pauses a lane, longer each time. The pause ends early when a chunk of the model returns with answers,
   * because its permits are free then. A chunk without answers does not end it, or lanes would keep waking
   * each other.
   */
  #pause(): Promise<void> {
    const before = this.progress.answeringChunks;
    if (before > this.#answersAtPause) this.#pauses = 0;
    this.#answersAtPause = before;
    return pause(this.#context, this.#pauses++, () => this.progress.answeringChunks !== before);
  }
}
