/** Work that belongs to one key runs one after another, in the order in which it was asked for. */
export interface Turns {
  /** Runs `work` when all work asked for before it under the same key has ended, well or not. */
  take<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** {@link Turns} of one process; keys without work take no memory. */
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
