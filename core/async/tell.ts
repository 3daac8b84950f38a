/** Called once: with the value, or with null and the error. Must not throw. */
export type OnSettled<T> = (value: T | null, error: unknown) => void;

/** Tells a callback how a promise settled. */
export function tell<T>(promise: Promise<T>, onSettled: OnSettled<T>): void {
  promise.then(
    (value) => onSettled(value, null),
    (error: unknown) => onSettled(null, error),
  );
}
