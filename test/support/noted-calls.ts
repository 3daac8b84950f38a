/** A proxy that records which methods are called; `uncalled` returns the names in `used` that were not. */
export function noted<T extends object>(
  object: T,
  used = Object.keys(object),
): { readonly methods: T; uncalled(): string[] } {
  const called = new Set<PropertyKey>();
  const methods = new Proxy(object, {
    get: (target, name, receiver) => {
      called.add(name);
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  return { methods, uncalled: () => used.filter((name) => !called.has(name)) };
}
