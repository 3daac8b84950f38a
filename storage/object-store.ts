import type { Readable } from 'node:stream';
import type { OnSettled } from '../core/async/tell';
import type { Range } from '../core/range';

/**
 * Stores all bytes: inputs, plans, journal, results (docs/design/journal.md#object-store). Keys are
 * slash-separated names of `[A-Za-z0-9._-]`, and no key is a folder of another.
 *
 * An implementation MUST make `putIfAbsent` atomic and durable. When it returns, every reader sees the
 * whole object, or, after `exists`, the whole object of another writer. A crash in the middle leaves no
 * object under the key. After an error the object may exist; it is whole then.
 *
 * A transient error (full disk, outage) is `object_store_failed`, which is retryable. A missing object is
 * `object_missing`. An implementation MUST never report one as the other.
 */
export interface ObjectStore {
  /**
   * Writes the whole object. If the key exists, nothing changes and `exists` is returned. A piece of the
   * body may be overwritten by its owner once the next one is requested.
   */
  putIfAbsent(key: string, body: ObjectBody): Promise<PutResult>;

  /**
   * Joins whole objects of this store, in their order, into a new one. If `key` exists, nothing changes and
   * `exists` is returned. Like `putIfAbsent` it is atomic and durable. The store copies by itself if it can,
   * so without an inspector the bytes may never reach this process. With one they are read once more only if
   * the store copies by itself. @throws object_missing if a part is missing, and what the inspector throws
   */
  concatenate(key: string, parts: readonly string[], inspector?: JoinInspector): Promise<PutResult>;

  /** Size in bytes; null if there is no such object. */
  head(key: string): Promise<ObjectHead | null>;

  /** The bytes of `range`, or the whole object without it. @throws object_missing */
  read(key: string, range?: Range): Promise<Buffer>;

  /**
   * Streams the bytes of `range`, or the whole object. Errors arrive on the stream. A caller that stops
   * early destroys it.
   */
  stream(key: string, range?: Range): Readable;

  /**
   * The same for a consumer that needs no chunk any more when it asks for the next one: chunks lie in memory that is used
   * again. A cache keeps what passes of a whole object, because it will soon be read in many places.
   */
  scan(key: string, options?: ScanOptions): AsyncIterable<Buffer>;

  /**
   * A handle for many small reads of one object, such as the input of a batch. The caller closes it.
   * @throws object_missing
   */
  open(key: string): Promise<ObjectReader>;

  /** Objects whose key begins with `prefix`, in key order. */
  list(prefix: string, options?: ListOptions): AsyncIterable<ListedObject>;

  /** Removes an object; a missing one is success. */
  delete(key: string): Promise<void>;

  /** A cheap round trip for readiness checks. @throws object_store_failed */
  check(): Promise<void>;

  /**
   * The random id of this store, 32 hexadecimal digits. The first call of the first process creates it
   * (docs/design/read-model.md#store-identity). @throws object_store_failed
   */
  storeId(): Promise<string>;

  /**
   * Removes what crashed writers left unfinished more than a day ago: temporary files, or uploads that were
   * never completed. Returns their number. @throws object_store_failed
   */
  removeUnfinished(): Promise<number>;

  close(): Promise<void>;
}

export interface ScanOptions {
  /** Without it, the whole object. */
  readonly range?: Range | undefined;
  /** Ends the scan with an error, also while it waits for the store. */
  readonly signal?: AbortSignal | undefined;
}

export interface ListOptions {
  /**
   * Only keys behind this one, which begins with the prefix and need not exist. Such a caller mostly wants a few
   * keys, so not many are fetched before it asks for more.
   */
  readonly after?: string | undefined;
}

/** The bytes of an object, whole or in pieces. */
export type ObjectBody = Uint8Array | AsyncIterable<Uint8Array>;
/** `exists`: the key was taken, and nothing changed. */
export type PutResult = 'created' | 'exists';

/** Sees all bytes of a joined object before anyone can read it. If it throws, there is no object. */
export interface JoinInspector {
  /** Called for all bytes in their order. `part` is the index of the part that they are from. */
  update(chunk: Buffer, part: number): void;
  /** Called once, after the last byte. */
  finish(): void;
}

/** What is known of an object without reading it; `size` in bytes. */
export interface ObjectHead {
  readonly size: number;
}

/** One object of a listing; `size` in bytes. */
export interface ListedObject {
  readonly key: string;
  readonly size: number;
  /** When its bytes were written, on the clock of the store. */
  readonly writtenAtMs: number;
}

/** An open object for reads at any position. The caller closes it. */
export interface ObjectReader {
  readonly size: number;
  /**
   * Exactly `length` bytes from `position`, or fewer at the end of the object. Returns a fresh buffer that
   * callers may keep, or the first bytes of `into`, which must hold at least `length`.
   */
  read(position: number, length: number, into?: Buffer): Promise<Buffer>;
  /**
   * The same without a promise, for reads of which there is one for each request
   * (docs/design/execution.md#lines-that-are-read-alone). `onRead` may be called before it returns.
   */
  readLater(
    position: number,
    length: number,
    into: Buffer | undefined,
    onRead: OnSettled<Buffer>,
  ): void;
  /**
   * The same, synchronously from memory, without a system call. Null if the bytes are not in memory; then
   * the caller must use `read`.
   */
  readNow?(position: number, length: number, into?: Buffer): Buffer | null;
  /** Gets bytes from `position` on into memory, for reads that will follow there. */
  readAhead?(position: number): Promise<void>;
  close(): Promise<void>;
}
