/** How fast a number grows, by what was seen of it lately. */
export interface Rate {
  add(count: number, atMs: number): void;
  /** Growth a second over the last {@link createRate} window; `null` while too little was seen. */
  perSecond(): number | null;
}

const WINDOW_MS = 30_000;
/** Below this the first answers say more about the start than about the speed. */
const MIN_SPAN_MS = 1_000;

/** A rate over the last 30 s, so that a slow start or a pause does not weigh for ever. */
export function createRate(): Rate {
  let seen: { readonly count: number; readonly atMs: number }[] = [];
  return {
    add(count, atMs) {
      seen.push({ count, atMs });
      const oldest = atMs - WINDOW_MS;
      // The last one before the window stays: it is where the window's growth begins.
      const keepFrom = seen.findLastIndex((sample) => sample.atMs <= oldest);
      if (keepFrom > 0) seen = seen.slice(keepFrom);
    },
    perSecond() {
      const first = seen[0];
      const last = seen.at(-1);
      if (first === undefined || last === undefined) return null;
      const spanMs = last.atMs - first.atMs;
      return spanMs < MIN_SPAN_MS ? null : ((last.count - first.count) / spanMs) * 1_000;
    },
  };
}
