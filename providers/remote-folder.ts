import type { CallOptions, IdempotentResult, JobInput } from './provider';

/**
 * A folder of a bucket, which a provider reads inputs from and writes results to. Names are relative to the
 * folder. Like all calls to a provider, each is one attempt, and its failure is a value.
 */
export interface RemoteFolder {
  /** The address of an object as the provider takes it, such as `gs://bucket/folder/name`. */
  uri(name: string): string;
  /** The name of an object by its address; null if it is not in the folder. */
  nameOf(uri: string): string | null;
  /** Writes an object. It replaces what is there. */
  put(name: string, input: JobInput, call: CallOptions): Promise<IdempotentResult<void>>;
  /**
   * Passes an object on, piece by piece, with back-pressure. Rejects with the error of `take`. `gone` if there
   * is no such object.
   */
  read(
    name: string,
    take: (piece: Buffer) => Promise<void>,
    call: CallOptions,
  ): Promise<IdempotentResult<void>>;
  /** All names that begin with `prefix`. It costs one call per thousand names. */
  list(prefix: string, call: CallOptions): Promise<IdempotentResult<readonly string[]>>;
  /** Deletes an object. Idempotent: what is gone counts as deleted. */
  delete(name: string, call: CallOptions): Promise<IdempotentResult<void>>;
}
