import { LeaderFirst } from '../../core/plan/leader-first';
import type { ChunkLedger, ChunkLine } from './chunk-ledger';

/** Pause of lines that were skipped to probe with another one: the gateway may answer again by then. */
const SKIPPED_PAUSE_MS = 1_000;

/**
 * The lines of a chunk that have no answer: fresh lines in plan order with leaders first
 * ({@link LeaderFirst}), and lines in backoff. A line whose backoff is over goes before fresh lines, because
 * it is older.
 */
export class LineQueue {
  readonly #ledger: ChunkLedger;
  readonly #maxBackingOff: number;
  /** Sorted by `notBeforeMs`. From `maxBackingOff` lines on, no fresh line is taken. */
  readonly #backingOff: ChunkLine[] = [];
  readonly #fresh: LeaderFirst;
  #skipBeforeProbe: number;

  /** @param firstProbe how many lines the first probe skips: a different number for each attempt */
  constructor(ledger: ChunkLedger, maxBackingOff: number, firstProbe = 0) {
    this.#ledger = ledger;
    this.#fresh = new LeaderFirst({
      marks: ledger.runMarks,
      isAnswered: (index) => ledger.isAnswered(index),
      lengthOf: (index) => ledger.lengthOf(index),
    });
    this.#maxBackingOff = maxBackingOff;
    this.#skipBeforeProbe = firstProbe % maxBackingOff;
  }

  /**
   * A line to probe a gateway that is away with; if possible a different one each time, because a single
   * line may be what makes its server fail (docs/design/execution.md#circuit-breaker).
   */
  takeForProbe(nowMs: number): ChunkLine | null {
    for (; this.#skipBeforeProbe > 0; this.#skipBeforeProbe--) {
      const line = this.#nextFresh(nowMs);
      if (line === null) break;
      this.putBack({ ...line, notBeforeMs: Math.max(line.notBeforeMs, nowMs + SKIPPED_PAUSE_MS) });
    }
    while (this.#backingOff.length < this.#maxBackingOff) {
      const line = this.#nextFresh(nowMs);
      if (line === null) break;
      if (line.notBeforeMs <= nowMs) return line;
      this.putBack(line);
    }
    return this.take(nowMs);
  }

  /** The next line to send now; null before {@link nextDueMs}, or if followers wait for their leader. */
  take(nowMs: number): ChunkLine | null {
    const due = this.#backingOff[0];
    if (due !== undefined && due.notBeforeMs <= nowMs) {
      this.#backingOff.shift();
      return due;
    }
    while (this.#backingOff.length < this.#maxBackingOff) {
      const line = this.#nextFresh(nowMs);
      if (line === null || line.notBeforeMs <= nowMs) return line;
      // The line is in backoff since an earlier attempt.
      this.putBack(line);
    }
    return null;
  }

  /** Puts a line into backoff until its `notBeforeMs`. */
  putBack(line: ChunkLine): void {
    const later = this.#backingOff.findIndex((other) => other.notBeforeMs > line.notBeforeMs);
    this.onEnded(line);
    this.#backingOff.splice(later === -1 ? this.#backingOff.length : later, 0, line);
  }

  /** A line is sent: the followers of a leader wait for it. */
  onSent({ position }: ChunkLine, nowMs: number): void {
    this.#fresh.onSent(position - this.#ledger.from, nowMs);
  }

  /** The try of a line has ended, so that the followers of a leader may go. */
  onEnded({ position }: ChunkLine): void {
    this.#fresh.onEnded(position - this.#ledger.from);
  }

  /** When the first line in backoff is due, Unix ms; null if there is none. */
  get nextDueMs(): number | null {
    return this.#backingOff[0]?.notBeforeMs ?? null;
  }

  /** Lines in backoff, the first due first. */
  get backingOff(): readonly ChunkLine[] {
    return this.#backingOff;
  }

  get isEmpty(): boolean {
    return this.#backingOff.length === 0 && this.#fresh.isEmpty;
  }

  #nextFresh(nowMs: number): ChunkLine | null {
    const index = this.#fresh.take(nowMs);
    return index === null ? null : this.#ledger.line(index);
  }
}
