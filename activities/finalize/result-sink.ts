import type { ObjectStore, PutResult } from '../../storage/object-store';

const BLOCK_BYTES = 1024 * 1024;
const MAX_WAITING_BLOCKS = 3;
const NEWLINE = 0x0a;

/**
 * A result file that comes into being line by line: gathered in blocks of 1 MiB, streamed to the
 * store with back-pressure, put only if absent. The object is begun with its first line, so a file
 * without lines is none. One that exists already is taken as it is: the same manifest gives the same
 * bytes (execution §2).
 */
export class ResultSink {
  readonly #store: ObjectStore;
  readonly #key: string;
  readonly #exists: boolean;
  #lines = 0;
  #block: Buffer = Buffer.alloc(0);
  #used = 0;
  #waiting: Buffer[] = [];
  #isEnded = false;
  #put: Promise<PutResult> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #wakeReader: () => void = () => undefined;
  #wakeWriter: () => void = () => undefined;

  private constructor(store: ObjectStore, key: string, exists: boolean) {
    this.#store = store;
    this.#key = key;
    this.#exists = exists;
  }

  /** @throws object_store_failed */
  static async open(store: ObjectStore, key: string): Promise<ResultSink> {
    return new ResultSink(store, key, (await store.head(key)) !== null);
  }

  /** Whether `drained` is to be awaited before more is written. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_WAITING_BLOCKS || this.#failure !== null;
  }

  /** Adds the line `bytes[start, end)` and a newline. */
  writeLine(bytes: Buffer, start: number, end: number): void {
    this.#lines++;
    if (this.#exists) return;
    const length = end - start + 1;
    if (this.#used + length > this.#block.length) this.#startBlock(length);
    bytes.copy(this.#block, this.#used, start, end);
    this.#used += length;
    this.#block[this.#used - 1] = NEWLINE;
  }

  /** Waits until the store has taken enough. @throws what the store failed with */
  async drained(): Promise<void> {
    while (this.isFull) {
      if (this.#failure !== null) throw this.#failure.error;
      await new Promise<void>((resolve) => (this.#wakeWriter = resolve));
    }
  }

  /** Completes the object; null where no line was written, else its size. @throws object_store_failed */
  async end(): Promise<{ bytes: number } | null> {
    if (this.#lines === 0) return null;
    if (!this.#exists) {
      this.#startBlock(0);
      this.#isEnded = true;
      this.#wakeReader();
      await this.#put;
      if (this.#failure !== null) throw this.#failure.error;
    }
    const head = await this.#store.head(this.#key);
    return { bytes: head?.size ?? 0 };
  }

  /** Gives up an unfinished object: the store leaves nothing of it behind. Idempotent. */
  async abandon(error: unknown): Promise<void> {
    if (this.#isEnded) return;
    this.#failure ??= { error };
    this.#wakeReader();
    await this.#put;
  }

  #startBlock(byteLength: number): void {
    if (this.#used > 0) {
      this.#waiting.push(this.#block.subarray(0, this.#used));
      this.#wakeReader();
      this.#put ??= this.#startPut();
    }
    this.#block = byteLength === 0 ? Buffer.alloc(0) : freshBlock(byteLength);
    this.#used = 0;
  }

  async #startPut(): Promise<PutResult> {
    try {
      return await this.#store.putIfAbsent(this.#key, this.#blocks());
    } catch (error) {
      this.#failure ??= { error };
      this.#wakeWriter();
      return 'exists';
    }
  }

  async *#blocks(): AsyncGenerator<Buffer> {
    for (;;) {
      const block = this.#waiting.shift();
      this.#wakeWriter();
      if (block !== undefined) yield block;
      else if (this.#failure !== null) throw this.#failure.error;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }
}

function freshBlock(byteLength: number): Buffer {
  return Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, byteLength));
}
