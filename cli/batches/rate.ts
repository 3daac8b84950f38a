/** The recent growth rate of a counter. */
export interface Rate {
  add(count: number, atMs: number): void;
  /** Growth per second in the window; `null` while there are too few samples. */
  perSecond(): number | null;
}

const WINDOW_MS = 30_000;
/** A rate over a shorter span is too inaccurate to show. */
const MIN_SPAN_MS = 1_000;

/** A rate over the last 30 s: a slow start or a pause is forgotten after that time. */
export function createRate(): Rate {
  let samples: { readonly count: number; readonly atMs: number }[] = [];
  return {
    add(count, atMs) {
      samples.push({ count, atMs });
      const oldest = atMs - WINDOW_MS;
      // The last sample before the window stays, because the growth in the window begins there.
      const keepFrom = samples.findLastIndex((sample) => sample.atMs <= oldest);
      if (keepFrom > 0) samples = samples.slice(keepFrom);
    },
    perSecond() {
      const first = samples[0];
      const last = samples.at(-1);
      if (first === undefined || last === undefined) return null;
      const spanMs = last.atMs - first.atMs;
      return spanMs < MIN_SPAN_MS ? null : ((last.count - first.count) / spanMs) * 1_000;
    },
  };
}
