import { setMaxListeners } from 'node:events';

/**
 * Registers one listener per signal for any number of waiters. All lines of a chunk share one signal, and
 * an `EventTarget` walks the list of its listeners on every add and remove. One listener per line would
 * therefore cost time quadratic in the number of lines.
 */
export class AbortFanOut {
  readonly #bySignal = new WeakMap<AbortSignal, Set<() => void>>();

  /**
   * Calls `onAbort` once when `signal` aborts; the signal must not be aborted yet.
   * @returns a function that ends the subscription; calling it late or twice does nothing
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
    // Each gateway and each limit adds a listener to a signal. Node would warn of a leak from the 11th on.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', () => {
      for (const onAbort of waiting) onAbort();
      waiting.clear();
    });
    return waiting;
  }
}
