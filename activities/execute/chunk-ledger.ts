import type { FrameHeader } from '../../core/journal/frame';
import { FRAME_KIND, SENT_ALONE } from '../../core/journal/frame';
import { isPreferred } from '../../core/journal/merge';
import type { PlanEntry } from '../../core/plan/plan-entry';
import { decodePlanEntry, PLAN_ENTRY_BYTES } from '../../core/plan/plan-entry';
import type { FrameRef } from '../../storage/journal/journal-store';

/** One line of the chunk: its place in the plan and in the input, and what was tried so far. */
export interface ChunkLine extends PlanEntry {
  readonly position: number;
  /** Tries made, by whatever attempt. */
  tries: number;
  /** 429s that were not counted as tries, of whatever attempt. */
  refusals: number;
  notBeforeMs: number;
  /** Tries in a row that found no connection; they do not count as tries. */
  unconnected: number;
  /** When its gateway first seemed away to it in this run, Unix ms; 0: never. */
  failingSinceMs: number;
}

const OPEN = 0;
const COMPLETED = 1;
const FAILED = 2;

/**
 * What is known of each line of a chunk: answered or not, how, and where the frame lies. Filled from
 * the journal first, then by this run; the truth of its counts and of `next`.
 */
export class ChunkLedger {
  readonly from: number;
  readonly to: number;
  /** The chunk's part of the plan, as it lies in the store. */
  readonly #plan: Buffer;
  readonly #state: Uint8Array;
  readonly #indexByOffset = new Map<number, number>();
  readonly #retries = new Map<number, Pick<ChunkLine, 'tries' | 'refusals' | 'notBeforeMs'>>();
  readonly #frames = new Map<number, FrameRef>();
  /** For each line that was sent alone: the segments in which that is the last word on it. */
  readonly #diedAlone = new Map<number, Map<string, number>>();
  #next = 0;
  completed = 0;
  failed = 0;

  constructor(range: { from: number; to: number }, plan: Buffer) {
    this.from = range.from;
    this.to = range.to;
    this.#plan = plan;
    const entries = plan.length / PLAN_ENTRY_BYTES;
    this.#state = new Uint8Array(entries);
    for (let i = 0; i < entries; i++) this.#indexByOffset.set(decodePlanEntry(plan, i).offset, i);
  }

  get entries(): number {
    return this.#state.length;
  }

  /** Lowest plan position without an answer; `to` when there is none. */
  get next(): number {
    while (this.#next < this.#state.length && this.#state[this.#next] !== OPEN) this.#next++;
    return this.from + this.#next;
  }

  /** Lines without an answer. */
  get open(): number {
    return this.#state.length - this.completed - this.failed;
  }

  get allAnswered(): boolean {
    return this.completed + this.failed === this.#state.length;
  }

  /** Attempts that ended with this line alone in flight, and never said how. */
  crashesAlone(index: number): number {
    return this.#diedAlone.get(index)?.size ?? 0;
  }

  isAnswered(index: number): boolean {
    return this.#state[index] !== OPEN;
  }

  /** The line at `index` of the chunk, with what earlier attempts put back. */
  line(index: number): ChunkLine {
    const retry = this.#retries.get(index);
    const { offset, length, prefixHash } = decodePlanEntry(this.#plan, index);
    const position = this.from + index;
    const tries = retry?.tries ?? 0;
    const refusals = retry?.refusals ?? 0;
    const notBeforeMs = retry?.notBeforeMs ?? 0;
    const unknown = { unconnected: 0, failingSinceMs: 0 };
    return { offset, length, prefixHash, position, tries, refusals, notBeforeMs, ...unknown };
  }

  /** Takes over a frame found in the journal; those of other lines are ignored. */
  addFrame(ref: FrameRef): void {
    const index = this.#indexByOffset.get(ref.header.offset);
    if (index === undefined) return;
    this.#noteAlone(index, ref);
    if (ref.header.kind === FRAME_KIND.retry) {
      this.#learnRetry(index, ref);
      return;
    }
    this.#keepFrame(index, ref);
    this.#answer(index, ref.header.kind === FRAME_KIND.output);
  }

  /** An answer of this run, journalled or about to be. */
  recordAnswer(position: number, header: Pick<FrameHeader, 'kind'>): void {
    this.#answer(position - this.from, header.kind === FRAME_KIND.output);
  }

  /** Adds frames that are written now, then gives those of `[from, next)` in order of offset. */
  framesToSeal(written: readonly FrameRef[]): FrameRef[] {
    for (const ref of written) {
      const index = this.#indexByOffset.get(ref.header.offset);
      if (index !== undefined && ref.header.kind !== FRAME_KIND.retry) this.#keepFrame(index, ref);
    }
    const end = this.next - this.from;
    const frames: FrameRef[] = [];
    for (let i = 0; i < end; i++) {
      const ref = this.#frames.get(i);
      if (ref !== undefined) frames.push(ref);
    }
    return frames.sort((a, b) => a.header.offset - b.header.offset);
  }

  /** Counts over `[from, next)`: what the row keeps once the rest goes to another chunk. */
  countsBeforeNext(): { completed: number; failed: number } {
    const end = this.next - this.from;
    let completed = 0;
    let failed = 0;
    for (let i = 0; i < end; i++) {
      if (this.#state[i] === COMPLETED) completed++;
      else failed++;
    }
    return { completed, failed };
  }

  /** The frame that knows of more tries and refusals is the later one. */
  #learnRetry(index: number, { header, notBeforeMs = 0 }: FrameRef): void {
    const known = this.#retries.get(index);
    const { tries, refusals = 0 } = header;
    if ((known?.tries ?? 0) + (known?.refusals ?? 0) > tries + refusals) return;
    this.#retries.set(index, { tries, refusals, notBeforeMs });
  }

  #noteAlone(index: number, { header, objectKey, position }: FrameRef): void {
    const died = this.#diedAlone.get(index) ?? new Map<string, number>();
    if (header.kind === FRAME_KIND.retry && header.status === SENT_ALONE) {
      died.set(objectKey, position);
      this.#diedAlone.set(index, died);
    } else if ((died.get(objectKey) ?? Infinity) < position) died.delete(objectKey);
  }

  #answer(index: number, ok: boolean): void {
    const before = this.#state[index];
    const after = ok || before === COMPLETED ? COMPLETED : FAILED;
    if (before === after) return;
    if (before === FAILED) this.failed--;
    if (after === COMPLETED) this.completed++;
    else this.failed++;
    this.#state[index] = after;
  }

  #keepFrame(index: number, ref: FrameRef): void {
    const known = this.#frames.get(index);
    const claim = (of: FrameRef) => ({
      kind: of.header.kind,
      objectKey: of.objectKey,
      position: of.position,
    });
    if (known === undefined || isPreferred(claim(ref), claim(known))) this.#frames.set(index, ref);
  }
}
