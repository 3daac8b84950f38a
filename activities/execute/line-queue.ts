import type { ChunkLedger, ChunkLine } from './chunk-ledger';

/** Lines that were passed over for a probe come back soon: the gateway may be there again. */
const PASSED_OVER_MS = 1_000;

/**
 * The lines of a chunk that are still to be sent: fresh ones in plan order, put-back ones when their
 * time has come. Put-back lines go first: they are older.
 */
export class LineQueue {
  readonly #ledger: ChunkLedger;
  readonly #maxBackingOff: number;
  /** Sorted by time; short, since nothing new is sent beyond `maxBackingOff`. */
  readonly #backingOff: ChunkLine[] = [];
  #cursor = 0;
  #skipBeforeProbe: number;

  /** @param firstProbe the line to probe with first: another one for each attempt of a chunk */
  constructor(ledger: ChunkLedger, maxBackingOff: number, firstProbe = 0) {
    this.#ledger = ledger;
    this.#maxBackingOff = maxBackingOff;
    this.#skipBeforeProbe = firstProbe % maxBackingOff;
  }

  /**
   * A line to ask an absent gateway with, another one each time where there is one: a line that its
   * gateway cannot bear must not stand for all (execution §3 "Breaker").
   */
  takeForProbe(nowMs: number): ChunkLine | null {
    for (; this.#skipBeforeProbe > 0; this.#skipBeforeProbe--) {
      const line = this.#nextFresh();
      if (line === null) break;
      this.putBack({ ...line, notBeforeMs: Math.max(line.notBeforeMs, nowMs + PASSED_OVER_MS) });
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
      // Put back by an earlier attempt: its pause is honoured.
      this.putBack(line);
    }
    return null;
  }

  putBack(line: ChunkLine): void {
    const later = this.#backingOff.findIndex((other) => other.notBeforeMs > line.notBeforeMs);
    this.#backingOff.splice(later === -1 ? this.#backingOff.length : later, 0, line);
  }

  /** When the first put-back line is due; null where none waits. */
  get nextDueMs(): number | null {
    return this.#backingOff[0]?.notBeforeMs ?? null;
  }

  /** Lines that wait for their time. */
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
