/**
 * The results of `work` for all items, in the order of the items. Up to `limit` run at the same time, ahead
 * of the consumer. After a rejection, or if the consumer stops, no further item is started.
 */
export async function* inOrderAhead<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const running: Promise<R>[] = [];
  for await (const item of items) {
    const one = work(item);
    // A rejection is thrown when its turn comes. Until then it must not be unhandled.
    one.catch(() => undefined);
    running.push(one);
    const first = running.length < limit ? undefined : running.shift();
    if (first !== undefined) yield await first;
  }
  for (const one of running) yield await one;
}
