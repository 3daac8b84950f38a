/** Values of which the median counts, at most `size` of the latest ones. */
class RecentValues {
  readonly #values: number[] = [];
  readonly #size: number;
  #next = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get count(): number {
    return this.#values.length;
  }

  add(value: number): void {
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % this.#size;
  }

  /** The lower median; 0 if there are no values. */
  get median(): number {
    const sorted = [...this.#values].sort((a, b) => a - b);
    return sorted[(sorted.length - 1) >> 1] ?? 0;
  }
}

const MINUTE_MS = 60_000;
/** Minutes of which the best one is the base. */
const BASE_MINUTES = 10;
/** Streams of which the median is the present value. */
const RECENT_STREAMS = 20;
/** Fewer streams show nothing. */
const MIN_STREAMS = 5;
/** Streams of one minute that are kept. */
const MINUTE_STREAMS = 64;
/** A class without streams for this long shows nothing about the present. */
const SILENT_AFTER_MS = 10_000;

/** What a {@link TtfbWindow} says of the present and of the base, ms. */
export interface TtfbReport {
  readonly recentMs: number | null;
  readonly baseMs: number | null;
}

/**
 * The times to first byte of one class of prompts, or of one backend: those of the latest streams, and the lowest median of a
 * minute in the last ten minutes (docs/design/flow-control.md#do-no-harm).
 */
export class TtfbWindow {
  #recent = new RecentValues(RECENT_STREAMS);
  #sinceMs = -Infinity;
  /** Medians of whole minutes, by number of the minute. */
  readonly #medians = new Map<number, number>();
  #minute = 0;
  #ofMinute = new RecentValues(MINUTE_STREAMS);
  #lastMs = -Infinity;

  add(ttfbMs: number, nowMs: number): void {
    this.#turnTo(Math.floor(nowMs / MINUTE_MS));
    if (nowMs - ttfbMs >= this.#sinceMs) this.#recent.add(ttfbMs);
    this.#ofMinute.add(ttfbMs);
    this.#lastMs = nowMs;
  }

  /** Only streams that are sent from now on show the present. */
  restart(nowMs: number): void {
    this.#recent = new RecentValues(RECENT_STREAMS);
    this.#sinceMs = nowMs;
  }

  /** Whether there was a stream in the last 10 s. */
  isHeard(nowMs: number): boolean {
    return nowMs - this.#lastMs < SILENT_AFTER_MS;
  }

  /** Median of the latest streams divided by the base; null if too little is known. */
  slowdown(nowMs: number): number | null {
    const { recentMs, baseMs } = this.report(nowMs);
    return recentMs === null || baseMs === null || baseMs <= 0 ? null : recentMs / baseMs;
  }

  /** Median of the latest streams, and the base; null for what too little is known of. */
  report(nowMs: number): TtfbReport {
    this.#turnTo(Math.floor(nowMs / MINUTE_MS));
    const isKnown = this.isHeard(nowMs) && this.#recent.count >= MIN_STREAMS;
    return { recentMs: isKnown ? this.#recent.median : null, baseMs: this.#base() };
  }

  #base(): number | null {
    const medians = [...this.#medians.values()];
    if (this.#ofMinute.count >= MIN_STREAMS) medians.push(this.#ofMinute.median);
    return medians.length === 0 ? null : Math.min(...medians);
  }

  #turnTo(minute: number): void {
    if (minute === this.#minute) return;
    if (this.#ofMinute.count >= MIN_STREAMS) this.#medians.set(this.#minute, this.#ofMinute.median);
    this.#minute = minute;
    this.#ofMinute = new RecentValues(MINUTE_STREAMS);
    for (const old of this.#medians.keys())
      if (old <= minute - BASE_MINUTES) this.#medians.delete(old);
  }
}
