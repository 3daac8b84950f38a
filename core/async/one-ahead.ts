/**
 * The same items, each asked for while the consumer uses the one before it. The source makes one at a time, so it may keep
 * state that `inOrderAhead` would share between items. An item must stay valid while the next one is made. When the
 * consumer stops, the source is ended after its step.
 */
export async function* oneAhead<T>(source: AsyncGenerator<T, void>): AsyncGenerator<T> {
  try {
    for (let coming = source.next(); ;) {
      const { done, value } = await coming;
      if (done === true) return;
      coming = source.next();
      // A rejection is thrown when its turn comes. Until then it must not be unhandled.
      coming.catch(() => undefined);
      yield value;
    }
  } finally {
    await source.return();
  }
}
