/** What a {@link HealthWatch} does. */
export interface HealthWatchParts {
  readonly intervalMs: number;
  /** Asks once, within a time limit. It must not reject. */
  ask(): Promise<void>;
}

/** Asks a worker for its health at an interval, one question at a time, and at once when it is told to. */
export class HealthWatch {
  readonly #parts: HealthWatchParts;
  #timer: NodeJS.Timeout | null = null;
  #asking: Promise<void> | null = null;
  #isClosed = false;

  constructor(parts: HealthWatchParts) {
    this.#parts = parts;
    this.askNow();
  }

  /** Asks now, unless a question is open. */
  askNow(): void {
    if (this.#isClosed || this.#asking !== null) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#asking = this.#parts.ask().finally(() => {
      this.#asking = null;
      if (this.#isClosed) return;
      this.#timer = setTimeout(() => this.askNow(), this.#parts.intervalMs).unref();
    });
  }

  /** Asks no more. Settles when the last question has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#asking;
  }
}
