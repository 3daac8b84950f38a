/**
 * Runs `work` on every item, at most `limit` at a time. The first rejection ends it: it is thrown when
 * what runs has settled.
 */
export async function mapConcurrently<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  try {
    for await (const item of items) {
      const one: Promise<void> = work(item).then(() => void running.delete(one));
      // Thrown by the race or the end; in between it is not unhandled.
      one.catch(() => undefined);
      running.add(one);
      if (running.size >= limit) await Promise.race(running);
    }
    await Promise.all(running);
  } finally {
    await Promise.allSettled(running);
  }
}
