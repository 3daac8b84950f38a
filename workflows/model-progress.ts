import type { ExecuteChunkResult } from '../activities/contract';
import { EXIT_REASON, type ExitReason } from '../core/chunks/exit-reason';
import { laneCount, type LaneCountInput } from '../core/chunks/lanes';
import { OpenRanges } from '../core/chunks/open-ranges';
import type { Range } from '../core/range';
import type { ResumedModel } from './contract';

/** How far one model is, and what its chunks have shown about it. */
export class ModelProgress {
  readonly open: OpenRanges;
  completed: number;
  failed: number;
  /** Exit reason of the latest chunk; `queued` before the first one. */
  lastExit: ExitReason | 'queued' = 'queued';
  /** Answers per second of the latest chunk that had any; null before that. */
  ratePerSec: number | null = null;
  /** 95th percentile of answer times, ms; null before the first answer. */
  p95Ms: number | null = null;
  /** A gateway has held all requests of a chunk: later chunks may stay until their first answer. */
  mayBeHeld = false;
  /** Number of chunks that returned with answers. A paused lane goes on when it grows. */
  answeringChunks = 0;
  /** A chunk failed during a stop, so its worker may still be writing answers. */
  isUnaccounted = false;
  readonly #entries: number;
  readonly #lanes: Pick<LaneCountInput, 'lanesPerModel' | 'spareLanes'>;
  readonly #recentWorkers: string[] = [];

  /** @param lanes what bounds their number */
  constructor(
    { entries, open, completed, failed }: ResumedModel,
    lanes: Pick<LaneCountInput, 'lanesPerModel' | 'spareLanes'>,
  ) {
    this.#lanes = lanes;
    this.open = new OpenRanges(open);
    this.#entries = entries;
    this.completed = completed;
    this.failed = failed;
  }

  /** Lines without an answer, including lines of chunks in flight. */
  get unsettled(): number {
    return this.#entries - this.completed - this.failed;
  }

  /** How many lanes the model should have now. */
  get wantedLanes(): number {
    const recentWorkers = this.#recentWorkers;
    return laneCount({ ...this.#lanes, totalLines: this.#entries, recentWorkers });
  }

  /** Puts back what a chunk left unanswered, and counts the rest. */
  settle(range: Range, result: ExecuteChunkResult): void {
    this.open.giveBack({ from: result.next, to: range.to });
    this.completed += result.completed;
    this.failed += result.failed;
    this.lastExit = result.left;
  }

  /** Counts what a job of a provider has answered. */
  add({ completed, failed }: { readonly completed: number; readonly failed: number }): void {
    this.completed += completed;
    this.failed += failed;
  }

  /** Records rate, answer times and worker. Forgets the oldest worker if there are more than lanes. */
  learn({ ratePerSec, p95Ms, answered, worker, left }: ExecuteChunkResult): void {
    if (left === EXIT_REASON.held) this.mayBeHeld = true;
    if (ratePerSec !== null) this.ratePerSec = ratePerSec;
    if (p95Ms !== null) this.p95Ms = p95Ms;
    if (answered > 0) this.answeringChunks++;
    this.#recentWorkers.push(worker);
    if (this.#recentWorkers.length > this.wantedLanes) this.#recentWorkers.shift();
  }
}
