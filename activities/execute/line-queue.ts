import type { ChunkLedger, ChunkLine } from './chunk-ledger';

/** Pause of lines that were skipped to probe with another one: the gateway may answer again by then. */
const SKIPPED_PAUSE_MS = 1_000;

/**
 * The lines of a chunk that have no answer: fresh lines in plan order, and lines in backoff. A line whose
 * backoff is over goes before fresh lines, because it is older.
 */
export class LineQueue {
  readonly #ledger: ChunkLedger;
  readonly #maxBackingOff: number;
  /** Sorted by `notBeforeMs`. From `maxBackingOff` lines on, no fresh line is taken. */
  readonly #backingOff: ChunkLine[] = [];
  #cursor = 0;
  #skipBeforeProbe: number;

  /** @param firstProbe how many lines the first probe skips: a different number for each attempt */
  constructor(ledger: ChunkLedger, maxBackingOff: number, firstProbe = 0) {
    this.#ledger = ledger;
    this.#maxBackingOff = maxBackingOff;
    this.#skipBeforeProbe = firstProbe % maxBackingOff;
  }

  /**
   * A line to probe a gateway that is away with; if possible a different one each time, because a single
   * line may be what makes its server fail (docs/design/execution.md#circuit-breaker).
   */
  takeForProbe(nowMs: number): ChunkLine | null {
    for (; this.#skipBeforeProbe > 0; this.#skipBeforeProbe--) {
      const line = this.#nextFresh();
      if (line === null) break;
      this.putBack({ ...line, notBeforeMs: Math.max(line.notBeforeMs, nowMs + SKIPPED_PAUSE_MS) });
    }
    while (this.#backingOff.length < this.#maxBackingOff) {
      const line = this.#nextFresh();
      if (line === null) break;
      if (line.notBeforeMs <= nowMs) return line;
      this.putBack(line);
    }
    return this.take(nowMs);
  }

  /** The next line to send now, or null: see {@link nextDueMs}. */
  take(nowMs: number): ChunkLine | null {
    const due = this.#backingOff[0];
    if (due !== undefined && due.notBeforeMs <= nowMs) {
      this.#backingOff.shift();
      return due;
    }
    while (this.#backingOff.length < this.#maxBackingOff) {
      const line = this.#nextFresh();
      if (line === null || line.notBeforeMs <= nowMs) return line;
      // The line is in backoff since an earlier attempt.
      this.putBack(line);
    }
    return null;
  }

  /** Puts a line into backoff until its `notBeforeMs`. */
  putBack(line: ChunkLine): void {
    const later = this.#backingOff.findIndex((other) => other.notBeforeMs > line.notBeforeMs);
    this.#backingOff.splice(later === -1 ? this.#backingOff.length : later, 0, line);
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
    this.#skipAnswered();
    return this.#backingOff.length === 0 && this.#cursor >= this.#ledger.entries;
  }

  #nextFresh(): ChunkLine | null {
    this.#skipAnswered();
    if (this.#cursor >= this.#ledger.entries) return null;
    return this.#ledger.line(this.#cursor++);
  }

  #skipAnswered(): void {
    while (this.#cursor < this.#ledger.entries && this.#ledger.isAnswered(this.#cursor)) {
      this.#cursor++;
    }
  }
}
