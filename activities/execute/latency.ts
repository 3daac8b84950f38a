const KEPT = 512;

/** Answer times of a run: the 95th percentile over the last few hundred. */
export class LatencyWindow {
  readonly #samplesMs: number[] = [];
  #count = 0;

  add(ms: number): void {
    this.#samplesMs[this.#count++ % KEPT] = ms;
  }

  get p95Ms(): number | null {
    if (this.#count === 0) return null;
    const sorted = [...this.#samplesMs].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length * 0.95)] ?? null;
  }
}
