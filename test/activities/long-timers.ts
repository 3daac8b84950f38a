const LONG_MS = 10 * 60_000;
const ABOUT_MS = 60_000;

/** Timers of ten minutes and more, which end when the test says so. */
export interface LongTimers {
  /** Ends the timers that were set for about this long. */
  fire(ms: number): void;
}

/** Holds every long timer that is set from now on, until `jest.restoreAllMocks()`. */
export function holdLongTimers(): LongTimers {
  const held: { ms: number; run: () => void }[] = [];
  const set = globalThis.setTimeout;
  const hold = (run: () => void, ms = 0, ...args: unknown[]): NodeJS.Timeout => {
    if (ms < LONG_MS) return Reflect.apply(set, globalThis, [run, ms, ...args]) as NodeJS.Timeout;
    held.push({ ms, run });
    return set(() => undefined, 0);
  };
  jest.spyOn(globalThis, 'setTimeout').mockImplementation(hold);
  return {
    fire: (ms) => {
      for (const timer of held) if (Math.abs(timer.ms - ms) < ABOUT_MS) timer.run();
    },
  };
}
