import { setMaxListeners } from 'node:events';
import { KNEE } from './scene-plan';
import { SceneClient } from './scene-client';
import type { SceneServers } from './scene-servers';

/** How many times the duration it may take until there are enough answers, or any. */
const LONGEST = 10;

/**
 * Answers per second of the engines if each has as many requests as it has slots; 0 if none answers. Answers come in
 * waves as large as the requests in flight, so a time alone says little on a busy machine: each half also lasts for a
 * wave, and both together for at most ten times the duration.
 */
export async function measureCapacity(
  servers: SceneServers,
  durationMs: number,
  signal: AbortSignal,
): Promise<number> {
  const client = new SceneClient();
  const ended = new AbortController();
  const over = AbortSignal.any([signal, ended.signal]);
  setMaxListeners(0, over);
  const ends = new AnswerTimes(durationMs / 2);
  const timer = setTimeout(() => ended.abort(), LONGEST * durationMs);
  const lane = async (number: number): Promise<void> => {
    for (let i = 0; !over.aborted; i++) {
      const url = servers.engines[number % servers.engines.length] ?? '';
      const name = `capacity ${number} ${i}`;
      const call = { url, name, isStream: false, token: null, dueMs: performance.now() };
      if ((await client.send({ ...call, signal: over })).isAnswered) ends.add(performance.now());
      if (ends.areEnough) ended.abort();
    }
  };
  await Promise.all(Array.from({ length: KNEE }, (_, number) => lane(number)));
  clearTimeout(timer);
  client.close();
  signal.throwIfAborted();
  return ends.perSecond;
}

/** Times of answers. The first ones come all at once, over new connections: only the second half is even. */
class AnswerTimes {
  readonly #halfMs: number;
  readonly #startMs = performance.now();
  #first = 0;
  #second = 0;
  /** When the first half ended. */
  #midMs: number | null = null;
  #lastMs = 0;

  constructor(halfMs: number) {
    this.#halfMs = halfMs;
  }

  add(nowMs: number): void {
    this.#lastMs = nowMs;
    if (this.#midMs !== null) this.#second++;
    else if (++this.#first >= KNEE && nowMs - this.#startMs >= this.#halfMs) this.#midMs = nowMs;
  }

  get areEnough(): boolean {
    return this.#second >= KNEE && this.#secondMs >= this.#halfMs;
  }

  get perSecond(): number {
    return this.#second === 0 ? 0 : (1_000 * this.#second) / this.#secondMs;
  }

  get #secondMs(): number {
    return this.#midMs === null ? 0 : this.#lastMs - this.#midMs;
  }
}
