/** Work that repeats until it is closed. */
export interface Repeated {
  /** Begins no further round, aborts the running one, and waits for it. */
  close(): Promise<void>;
}

/** How work is repeated. */
export interface RepeatOptions {
  readonly everyMs: number;
  /** Learns why a round failed. The next one follows nevertheless. */
  readonly onFailed: (error: unknown) => void;
}

/** Runs a round now and then every `everyMs`. Rounds never overlap: a round that takes longer skips the next. */
export function repeat(
  round: (signal: AbortSignal) => Promise<void>,
  { everyMs, onFailed }: RepeatOptions,
): Repeated {
  const stop = new AbortController();
  let running: Promise<void> | null = null;
  const next = (): void => {
    running ??= round(stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) onFailed(error);
      })
      .finally(() => (running = null));
  };
  next();
  const timer = setInterval(next, everyMs);
  timer.unref();
  return {
    close: async () => {
      clearInterval(timer);
      stop.abort();
      await running;
    },
  };
}
