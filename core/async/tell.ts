/** Called once: with the value, or with null and the error. Must not throw. */
export type OnSettled<T> = (value: T | null, error: unknown) => void;

/** Tells a callback how a promise settled. */
export function tell<T>(promise: Promise<T>, onSettled: OnSettled<T>): void {
  promise.then(
    (value) => onSettled(value, null),
    (error: unknown) => onSettled(null, error),
  );
}

/** The other way round: a promise of what `work` tells its callback. */
export function promised<T>(work: (onSettled: OnSettled<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    work((value, error) => {
      if (value !== null) resolve(value);
      else reject(error instanceof Error ? error : new Error(String(error)));
    });
  });
}
