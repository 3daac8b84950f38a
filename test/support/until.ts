import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits for a condition instead of a fixed time: evaluates it every `everyMs` and resolves with the
 * first truthy result. Throws "waited N ms for WHAT" after `timeoutMs`.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  timeoutMs: number,
  what: string,
  everyMs = 20,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await condition();
    if (answer) return answer as Exclude<T, false | null | undefined>;
    if (performance.now() >= deadline) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await delay(everyMs);
  }
}
