/**
 * Runs `work` on every item, at most `limit` at a time, in the order of the items. After the first
 * rejection it starts no further item, waits until the running ones have settled, and throws that error.
 */
export async function forEachConcurrently<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  try {
    for await (const item of items) {
      const one: Promise<void> = work(item).then(() => void running.delete(one));
      // `Promise.race` or `Promise.all` below throws a rejection. Until then it must not be unhandled.
      one.catch(() => undefined);
      running.add(one);
      if (running.size >= limit) await Promise.race(running);
    }
    await Promise.all(running);
  } finally {
    await Promise.allSettled(running);
  }
}
