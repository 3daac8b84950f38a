/** Runs work with the same key one at a time. */
export interface KeyedMutex {
  /** Runs `work` when all earlier work with the same key has ended or failed. */
  runExclusive<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** A {@link KeyedMutex} within this process. A key without work takes no memory. */
export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return {
    runExclusive: (key, work) => {
      const before = last.get(key) ?? Promise.resolve();
      const result = before.then(work, work);
      last.set(key, result);
      const forget = (): void => {
        if (last.get(key) === result) last.delete(key);
      };
      result.then(forget, forget);
      return result;
    },
  };
}
