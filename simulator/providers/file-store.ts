import { randomUUID } from 'node:crypto';

/** A file at a provider. It is in memory until it is deleted or expires. */
export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly purpose: string;
  readonly bytes: Buffer;
  readonly createdMs: number;
  /** Null for a file that does not expire. */
  readonly expiresMs: number | null;
}

/** The purpose of files that are objects of a bucket. */
const OBJECT = 'object';

/** The files of all simulated providers, oldest first. */
export class FileStore {
  readonly #files = new Map<string, StoredFile>();

  /** @param lifetimeMs null for a file that does not expire */
  add(file: Omit<StoredFile, 'id' | 'expiresMs'>, lifetimeMs: number | null): StoredFile {
    const id = `file-${randomUUID().replaceAll('-', '')}`;
    const expiresMs = lifetimeMs === null ? null : file.createdMs + lifetimeMs;
    const stored = { ...file, id, expiresMs };
    this.#files.set(id, stored);
    return stored;
  }

  /** Writes an object of a bucket. It replaces the one of the same name. */
  put(name: string, bytes: Buffer, nowMs: number): StoredFile {
    for (const { id } of this.objects(name, nowMs).filter((file) => file.name === name)) {
      this.delete(id);
    }
    return this.add({ name, purpose: OBJECT, bytes, createdMs: nowMs }, null);
  }

  /** The objects of buckets whose names begin with `prefix`, ordered by name. */
  objects(prefix: string, nowMs: number): readonly StoredFile[] {
    return this.all(nowMs)
      .filter(({ purpose, name }) => purpose === OBJECT && name.startsWith(prefix))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The object of a bucket; undefined if there is none. */
  object(name: string, nowMs: number): StoredFile | undefined {
    return this.objects(name, nowMs).find((file) => file.name === name);
  }

  /** Undefined if there is none, or it has expired. */
  get(id: string, nowMs: number): StoredFile | undefined {
    this.#expire(nowMs);
    return this.#files.get(id);
  }

  all(nowMs: number): readonly StoredFile[] {
    this.#expire(nowMs);
    return [...this.#files.values()];
  }

  delete(id: string): void {
    this.#files.delete(id);
  }

  #expire(nowMs: number): void {
    for (const { id, expiresMs } of this.#files.values()) {
      if (expiresMs !== null && expiresMs <= nowMs) this.#files.delete(id);
    }
  }
}
