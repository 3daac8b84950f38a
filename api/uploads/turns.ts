/** Runs work of one key one after the other, in the order of the calls. */
export interface Turns {
  /** Runs `work` when all earlier work of the same key has ended or failed. */
  take<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** {@link Turns} within this process. A key without work takes no memory. */
export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return {
    take: (key, work) => {
      const before = last.get(key) ?? Promise.resolve();
      const turn = before.then(work, work);
      last.set(key, turn);
      const forget = (): void => {
        if (last.get(key) === turn) last.delete(key);
      };
      turn.then(forget, forget);
      return turn;
    },
  };
}
