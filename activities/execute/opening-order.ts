import { pause } from '../runtime/pause';
import type { Chunk } from './chunk';

/** Longest time that a chunk waits for the first one of its batch, ms: a few round trips to a database nearby. */
const MOST_MS = 50;

/** Says that a chunk sends, or has ended; further calls do nothing. */
export type Opened = () => void;

/**
 * Lets the first chunk of a model of a batch open alone in this process. The first chunks of all lanes arrive together,
 * and opening one takes the thread milliseconds, so the first request would leave when nearly all are open. One chunk can
 * use the permits of all of them (docs/design/batch-path.md#the-first-requests).
 */
export class OpeningOrder {
  readonly #first = new Map<string, Promise<void>>();
  readonly #mostMs: number;

  /** @param mostMs longest time that a chunk waits, ms */
  constructor(mostMs = MOST_MS) {
    this.#mostMs = mostMs;
  }

  /** Waits until the chunk may open. The caller calls the result in any case. */
  async enter({ batchId, safeModel }: Chunk, signal: AbortSignal): Promise<Opened> {
    const key = `${batchId}/${safeModel}`;
    const first = this.#first.get(key);
    if (first === undefined) return this.#begin(key);
    await Promise.race([first, pause(this.#mostMs, signal)]);
    return () => undefined;
  }

  #begin(key: string): Opened {
    let open: Opened = () => undefined;
    const opened = new Promise<void>((resolve) => (open = resolve));
    this.#first.set(key, opened);
    return () => {
      if (this.#first.get(key) === opened) this.#first.delete(key);
      open();
    };
  }
}
