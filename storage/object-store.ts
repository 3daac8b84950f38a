import type { Readable } from 'node:stream';
import type { Range } from '../core/range';

/**
 * Where all bytes live: inputs, plans, journal, results. Keys are slash-separated names of
 * `[A-Za-z0-9._-]`; no key is a folder of another (execution §6).
 *
 * An implementation MUST make `putIfAbsent` atomic and durable: after it answers, every reader sees
 * the whole object or, when it answered `exists`, somebody else's whole object; a crash in the middle
 * leaves no object under the key. Temporary errors (full disk, outage) are thrown as
 * `object_store_failed` (retryable), a missing object as `object_missing`; never the other way round.
 */
export interface ObjectStore {
  /**
   * Writes the whole object, unless the key exists: then nothing changes and `exists` is answered. A
   * piece of the body may be overwritten by its owner once the next one is asked for.
   */
  putIfAbsent(key: string, body: ObjectBody): Promise<PutResult>;

  /** Size in bytes, or `null` where there is no such object. */
  head(key: string): Promise<ObjectHead | null>;

  /** Bytes `[start, end)` (whole object where left out). @throws object_missing */
  read(key: string, range?: Range): Promise<Buffer>;

  /** Streams bytes `[start, end)`. Errors arrive on the stream. The caller destroys it when it leaves early. */
  stream(key: string, range?: Range): Readable;

  /**
   * A handle for many small reads of one object (the input of a batch): positions are absolute.
   * The caller closes it. @throws object_missing
   */
  open(key: string): Promise<ObjectReader>;

  /** Objects whose key begins with `prefix`, in key order. */
  list(prefix: string): AsyncIterable<ListedObject>;

  /** Removes an object; a missing one is success. */
  delete(key: string): Promise<void>;

  /** A cheap round trip for readiness checks. @throws object_store_failed */
  check(): Promise<void>;

  close(): Promise<void>;
}

/** The bytes of an object, whole or as they come. */
export type ObjectBody = Uint8Array | AsyncIterable<Uint8Array>;
/** `exists`: the name was taken, and nothing was changed. */
export type PutResult = 'created' | 'exists';

/** What is known of an object without reading it; `size` in bytes. */
export interface ObjectHead {
  readonly size: number;
}

/** One object of a listing; `size` in bytes. */
export interface ListedObject {
  readonly key: string;
  readonly size: number;
  /** When its bytes were written, by the clock of the store. */
  readonly writtenAtMs: number;
}

/** An open object for reads at any position. The caller closes it. */
export interface ObjectReader {
  readonly size: number;
  /**
   * Exactly `length` bytes from `position`, or fewer at the end of the object: a fresh buffer that
   * callers may keep or, where `into` is given, its first bytes; it holds at least `length`.
   */
  read(position: number, length: number, into?: Buffer): Promise<Buffer>;
  /**
   * The same from memory, without waiting and without a system call, or null if the bytes are not at
   * hand: `read` is called then.
   */
  readNow?(position: number, length: number, into?: Buffer): Buffer | null;
  close(): Promise<void>;
}
