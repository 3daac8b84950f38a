import type { FrameHeader } from '../../core/journal/frame';
import { FRAME_KIND, keepsAnswer, SENT_ALONE } from '../../core/journal/frame';
import { isPreferred } from '../../core/journal/merge';
import { runStarts } from '../../core/plan/run-starts';
import { runsOfHashes } from '../../core/plan/runs';
import { unnumberedSegmentKey } from '../../core/names/object-names';
import type { PlanEntry } from '../../core/plan/plan-entry';
import { decodePlanEntry, PLAN_ENTRY_BYTES } from '../../core/plan/plan-entry';
import type { FrameRef } from '../../storage/journal/journal-store';

/** One line of the chunk: its place in the plan and in the input, and its tries so far. */
export interface ChunkLine extends PlanEntry {
  readonly position: number;
  /** Counted tries, by any attempt. */
  tries: number;
  /** 429s that did not count as tries, by any attempt. */
  refusals: number;
  /** The line is not sent before this time, Unix ms. */
  notBeforeMs: number;
  /** Tries in a row that found no connection. They do not count as tries. */
  unconnected: number;
  /** Tries in a row that a gateway gave up unserved. They do not count as tries. Only in this attempt. */
  unserved: number;
  /** When a try of this line first found the gateway away, Unix ms; 0 if none did. Only in this attempt. */
  failingSinceMs: number;
}

type FramePlace = Pick<FrameRef, 'objectKey' | 'position'>;

const OPEN = 0;
const COMPLETED = 1;
const FAILED = 2;

/**
 * The state of each line of a chunk: whether it is completed or failed, and where its frame is. It is
 * filled from the journal first and then by this attempt. The counts and `next` that the attempt reports
 * come from here.
 */
export class ChunkLedger {
  readonly from: number;
  readonly to: number;
  /** The chunk's entries of the plan, in their stored form. */
  readonly #plan: Buffer;
  /** What run begins at each line (core/plan/runs.ts). */
  readonly runMarks: Uint8Array;
  /** Made when it is first needed: only some gateways are told. */
  #runStarts: Int32Array | null = null;
  readonly #state: Uint8Array;
  readonly #indexByOffset = new Map<number, number>();
  readonly #retries = new Map<number, Pick<ChunkLine, 'tries' | 'refusals' | 'notBeforeMs'>>();
  readonly #frames = new Map<number, FrameRef>();
  /** Answers that end a line only if it gets no other one. */
  readonly #kept = new Map<number, FrameRef>();
  /**
   * Per line: the writers whose last frame of the line notes that it was about to be sent exclusively, each
   * with the place of this note. A writer is known by the name of its segments, without their numbers.
   */
  readonly #crashesAlone = new Map<number, Map<string, FramePlace>>();
  #next = 0;
  completed = 0;
  failed = 0;

  /** @param runMarks null if the plan has no runs object */
  constructor(
    range: { from: number; to: number },
    plan: Buffer,
    runMarks: Uint8Array | null = null,
  ) {
    this.from = range.from;
    this.to = range.to;
    this.#plan = plan;
    const entries = plan.length / PLAN_ENTRY_BYTES;
    this.#state = new Uint8Array(entries);
    for (let i = 0; i < entries; i++) this.#indexByOffset.set(decodePlanEntry(plan, i).offset, i);
    this.runMarks =
      runMarks ?? runsOfHashes(entries, (index) => decodePlanEntry(plan, index).prefixHash);
  }

  get entries(): number {
    return this.#state.length;
  }

  /** Lowest plan position without an answer; `to` if there is none. */
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

  /**
   * Number of workers that died while only this line was in flight. Their frames end with the note of its
   * exclusive send (docs/design/execution.md#poison-lines).
   */
  crashesAlone(index: number): number {
    return this.#crashesAlone.get(index)?.size ?? 0;
  }

  isAnswered(index: number): boolean {
    return this.#state[index] !== OPEN;
  }

  /** Bytes of a line of the input. */
  lengthOf(index: number): number {
    return decodePlanEntry(this.#plan, index).length;
  }

  isFailed(index: number): boolean {
    return this.#state[index] === FAILED;
  }

  /** Where the answer is that ends the open line at `index` if nothing else does; null if none is kept. */
  keptAnswer(index: number): FrameRef | null {
    return this.#kept.get(index) ?? null;
  }

  /** Plan position where the run of the line at `index` begins; -1 if the line shares no prefix. */
  runStart(index: number): number {
    this.#runStarts ??= runStarts({
      marks: this.runMarks,
      from: this.from,
      hashOf: (at) => decodePlanEntry(this.#plan, at).prefixHash,
    });
    return this.#runStarts[index] ?? -1;
  }

  /** The line at `index` of the chunk, with the tries and the pause of earlier attempts. */
  line(index: number): ChunkLine {
    const retry = this.#retries.get(index);
    const { offset, length, prefixHash } = decodePlanEntry(this.#plan, index);
    return {
      offset,
      length,
      prefixHash,
      position: this.from + index,
      tries: retry?.tries ?? 0,
      refusals: retry?.refusals ?? 0,
      notBeforeMs: retry?.notBeforeMs ?? 0,
      unconnected: 0,
      unserved: 0,
      failingSinceMs: 0,
    };
  }

  /** Takes over a frame of the journal. Frames of lines outside the chunk are ignored. */
  addFrame(ref: FrameRef): void {
    const index = this.#indexByOffset.get(ref.header.offset);
    if (index === undefined) return;
    this.#noteExclusiveSend(index, ref);
    if (keepsAnswer(ref.header)) {
      prefer(this.#kept, index, ref);
      return;
    }
    if (ref.header.kind === FRAME_KIND.retry) {
      this.#learnRetry(index, ref);
      return;
    }
    prefer(this.#frames, index, ref);
    this.#answer(index, ref.header.kind === FRAME_KIND.output);
  }

  /** Counts an answer of this attempt. */
  recordAnswer(position: number, header: Pick<FrameHeader, 'kind'>): void {
    this.#answer(position - this.from, header.kind === FRAME_KIND.output);
  }

  /** Adds the frames that this attempt wrote, and returns those of `[from, next)` in order of offset. */
  framesToSeal(written: readonly FrameRef[]): FrameRef[] {
    for (const ref of written) {
      const index = this.#indexByOffset.get(ref.header.offset);
      if (index !== undefined && ref.header.kind !== FRAME_KIND.retry)
        prefer(this.#frames, index, ref);
    }
    const end = this.next - this.from;
    const frames: FrameRef[] = [];
    for (let i = 0; i < end; i++) {
      const ref = this.#frames.get(i);
      if (ref !== undefined) frames.push(ref);
    }
    return frames.sort((a, b) => a.header.offset - b.header.offset);
  }

  /** Counts over `[from, next)`. The lines after that count for the chunk that settles them. */
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

  /** Of two retry frames of a line, the one with more tries and refusals is the later one. */
  #learnRetry(index: number, { header, notBeforeMs = 0 }: FrameRef): void {
    const known = this.#retries.get(index);
    const { tries, refusals = 0 } = header;
    if ((known?.tries ?? 0) + (known?.refusals ?? 0) > tries + refusals) return;
    this.#retries.set(index, { tries, refusals, notBeforeMs });
  }

  #noteExclusiveSend(index: number, ref: FrameRef): void {
    const { header, objectKey } = ref;
    const crashes = this.#crashesAlone.get(index) ?? new Map<string, FramePlace>();
    const writer = unnumberedSegmentKey(objectKey);
    const known = crashes.get(writer);
    if (known !== undefined && !isBehind(ref, known)) return;
    if (header.kind === FRAME_KIND.retry && header.status === SENT_ALONE) {
      crashes.set(writer, ref);
      this.#crashesAlone.set(index, crashes);
    } else crashes.delete(writer);
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
}

function prefer(frames: Map<number, FrameRef>, index: number, ref: FrameRef): void {
  const known = frames.get(index);
  const claim = (of: FrameRef) => ({
    kind: of.header.kind,
    objectKey: of.objectKey,
    position: of.position,
  });
  if (known === undefined || isPreferred(claim(ref), claim(known))) frames.set(index, ref);
}

/** Whether a writer wrote `frame` after `other`: numbers of segments ascend, and so do places in one. */
function isBehind(frame: FramePlace, other: FramePlace): boolean {
  if (frame.objectKey !== other.objectKey) return frame.objectKey > other.objectKey;
  return frame.position > other.position;
}
