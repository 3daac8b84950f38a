/** A value for one of its users, who closes it once. */
export interface SharedValue<T> {
  readonly value: T;
  close(): void;
}

interface Entry<T> {
  readonly value: Promise<T>;
  users: number;
}

/** Values that are made once for all who use them at the same time. */
export class SharedValues<T> {
  readonly #make: (key: string) => Promise<T>;
  readonly #entries = new Map<string, Entry<T>>();

  /** @param make called for the first user of a key, and again after all have closed it, or after it failed */
  constructor(make: (key: string) => Promise<T>) {
    this.#make = make;
  }

  /** @throws what `make` throws */
  async open(key: string): Promise<SharedValue<T>> {
    const entry = this.#entries.get(key) ?? this.#begin(key);
    entry.users++;
    const close = (): void => {
      if (--entry.users === 0) this.#end(key, entry);
    };
    try {
      return { value: await entry.value, close };
    } catch (error) {
      // Who opens it next makes it again, also while others still learn of this error.
      this.#end(key, entry);
      throw error;
    }
  }

  /** The next user gets a new value; others keep the old one. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  #begin(key: string): Entry<T> {
    const entry = { value: this.#make(key), users: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  #end(key: string, entry: Entry<T>): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }
}
