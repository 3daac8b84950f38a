import { setMaxListeners } from 'node:events';

/**
 * One listener per signal for any number of waiters. An `EventTarget` keeps its listeners in a
 * list that it walks on every add and remove, and one signal is shared by all lines of a chunk.
 */
export class AbortFanOut {
  readonly #bySignal = new WeakMap<AbortSignal, Set<() => void>>();

  /**
   * Calls `onAbort` once when `signal` aborts; the signal must not be aborted yet.
   * @returns what ends the subscription; calling it late or twice does nothing.
   */
  add(signal: AbortSignal, onAbort: () => void): () => void {
    const waiting = this.#bySignal.get(signal) ?? this.#listen(signal);
    waiting.add(onAbort);
    return () => {
      waiting.delete(onAbort);
    };
  }

  #listen(signal: AbortSignal): Set<() => void> {
    const waiting = new Set<() => void>();
    this.#bySignal.set(signal, waiting);
    // A signal may pass through any number of gateways; one listener for each is no leak.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', () => {
      for (const onAbort of waiting) onAbort();
      waiting.clear();
    });
    return waiting;
  }
}
