import type { CachedObject } from './page-fetch';
import { RandomReads } from './random-reads';

/** An object for one reader, which closes it. */
export interface OpenObject {
  readonly object: CachedObject;
  /** Of all its readers in this process. */
  readonly reads: RandomReads;
  /** Called at most once. */
  close(): void;
}

interface Entry {
  readonly object: Promise<CachedObject>;
  readonly reads: RandomReads;
  readers: number;
}

/**
 * The objects that are open in this process. While one is, opening it again needs no request. That it may be deleted
 * meanwhile is nothing new: each of its readers may find it gone.
 */
export class OpenObjects {
  readonly #find: (key: string) => Promise<CachedObject>;
  readonly #entries = new Map<string, Entry>();

  /** @param find looks an object up. @throws object_missing */
  constructor(find: (key: string) => Promise<CachedObject>) {
    this.#find = find;
  }

  /** @throws object_missing, and what else looking it up throws */
  async open(key: string): Promise<OpenObject> {
    const entry = this.#entries.get(key) ?? this.#begin(key);
    entry.readers++;
    const close = (): void => {
      if (--entry.readers === 0) this.#end(key, entry);
    };
    try {
      return { object: await entry.object, reads: entry.reads, close };
    } catch (error) {
      // Who opens it next looks it up again, also while others still learn of this error.
      this.#end(key, entry);
      throw error;
    }
  }

  /** The object was deleted: who opens it next looks it up again. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  #begin(key: string): Entry {
    const entry = { object: this.#find(key), reads: new RandomReads(), readers: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  #end(key: string, entry: Entry): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }
}
