/** Answer times that are kept. */
const WINDOW = 512;

/** The 95th percentile of the latest answer times of an attempt. */
export class LatencyWindow {
  readonly #samplesMs: number[] = [];
  #count = 0;

  add(ms: number): void {
    this.#samplesMs[this.#count++ % WINDOW] = ms;
  }

  /** Null before the first answer. */
  get p95Ms(): number | null {
    if (this.#count === 0) return null;
    const sorted = [...this.#samplesMs].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length * 0.95)] ?? null;
  }
}
