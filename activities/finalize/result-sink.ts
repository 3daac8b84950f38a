import type { ObjectStore, PutResult } from '../../storage/object-store';

/** Blocks of memory that is given. Smaller ones cost more calls and wake-ups, larger ones only memory. */
const LARGE_BLOCK_BYTES = 2 * 1024 * 1024;
const BLOCK_BYTES = 512 * 1024;
/** The files of most batches are small. */
const FIRST_BLOCK_BYTES = 64 * 1024;
const MAX_WAITING_BLOCKS = 2;
/** Beside these, one is being filled, and one is being written. */
const USUAL_BLOCKS = MAX_WAITING_BLOCKS + 2;
const NEWLINE = 0x0a;
const NO_ROOM = Buffer.alloc(0);

/** A buffer that is being filled, waits to be written, or is being written. */
interface Block {
  readonly bytes: Buffer;
  used: number;
}

interface SinkOptions {
  readonly exists: boolean;
  readonly memory: Buffer | null;
}

/**
 * Writes a result file line by line. Lines are collected in a few reused blocks, after a first
 * small one, and streamed to the store with back-pressure. The object is created with its first line, so a file
 * without lines does not exist. An existing object is kept as it is, because the same manifest gives the same bytes.
 */
export class ResultSink {
  readonly #store: ObjectStore;
  readonly #key: string;
  readonly #exists: boolean;
  /** Not used yet. */
  #memory: Buffer | null;
  #lines = 0;
  #bytes = 0;
  #block: Block | null = null;
  #waiting: Block[] = [];
  #free: Block[] = [];
  #isEnded = false;
  #put: Promise<PutResult> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #wakeReader: () => void = () => undefined;
  #wakeWriter: () => void = () => undefined;

  private constructor(store: ObjectStore, key: string, { exists, memory }: SinkOptions) {
    this.#store = store;
    this.#key = key;
    this.#exists = exists;
    this.#memory = memory;
  }

  /**
   * @param memory for blocks of 2 MiB, four of them; null for a small file
   * @throws object_store_failed
   */
  static async open(
    store: ObjectStore,
    key: string,
    memory: Buffer | null = null,
  ): Promise<ResultSink> {
    const exists = (await store.head(key)) !== null;
    return new ResultSink(store, key, { exists, memory });
  }

  /** Whether to await `drained` before writing more. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_WAITING_BLOCKS || this.#failure !== null;
  }

  /** Adds the line `bytes[start, end)` and a newline. */
  writeLine(bytes: Buffer, start: number, end: number): void {
    this.#lines++;
    if (this.#exists) return;
    this.#bytes += end - start + 1;
    let at = start;
    let block = this.#block ?? this.#nextBlock();
    while (end - at > block.bytes.length - block.used) {
      const cut = at + block.bytes.length - block.used;
      append(block, bytes, at, cut);
      at = cut;
      block = this.#nextBlock();
    }
    append(block, bytes, at, end);
    if (block.used === block.bytes.length) block = this.#nextBlock();
    block.bytes[block.used++] = NEWLINE;
  }

  /** Where the next lines may be written, if the caller writes them itself; empty if it may not. */
  get room(): Buffer {
    return this.#exists || this.#block === null
      ? NO_ROOM
      : this.#block.bytes.subarray(this.#block.used);
  }

  /** Counts bytes of whole lines that the caller has written to the start of {@link room}. */
  wrote(bytes: number): void {
    if (this.#block === null || bytes === 0) return;
    this.#block.used += bytes;
    this.#bytes += bytes;
  }

  /** Waits until the store has caught up. @throws the error of the store */
  async drained(): Promise<void> {
    while (this.isFull) {
      if (this.#failure !== null) throw this.#failure.error;
      await new Promise<void>((resolve) => (this.#wakeWriter = resolve));
    }
  }

  /** Completes the object and returns its size; null if no line was written. @throws object_store_failed */
  async end(): Promise<{ bytes: number } | null> {
    if (this.#lines === 0) return null;
    if (!this.#exists) {
      this.#passBlock();
      this.#isEnded = true;
      this.#wakeReader();
      const result = await this.#put;
      if (this.#failure !== null) throw this.#failure.error;
      if (result === 'created') return { bytes: this.#bytes };
    }
    const head = await this.#store.head(this.#key);
    return { bytes: head?.size ?? 0 };
  }

  /** Gives up an unfinished object. The store keeps nothing of it. Idempotent. */
  async abandon(error: unknown): Promise<void> {
    if (this.#isEnded) return;
    this.#failure ??= { error };
    this.#wakeReader();
    await this.#put;
  }

  /** All blocks but the last one are full. */
  #nextBlock(): Block {
    this.#passBlock();
    return (this.#block = this.#free.pop() ?? this.#freshBlock());
  }

  #freshBlock(): Block {
    const memory = this.#memory;
    if (this.#put !== null && memory !== null) {
      this.#memory = null;
      for (let end = memory.length; end >= LARGE_BLOCK_BYTES; end -= LARGE_BLOCK_BYTES) {
        this.#free.push({ bytes: memory.subarray(end - LARGE_BLOCK_BYTES, end), used: 0 });
      }
    }
    const bytes = this.#put === null ? FIRST_BLOCK_BYTES : BLOCK_BYTES;
    return this.#free.pop() ?? { bytes: Buffer.allocUnsafeSlow(bytes), used: 0 };
  }

  #passBlock(): void {
    if (this.#block === null) return;
    this.#waiting.push(this.#block);
    this.#block = null;
    this.#wakeReader();
    this.#put ??= this.#startPut();
  }

  /** Keeps the block for reuse, unless it is the first one, or a long line needed more blocks than usual. */
  #release(block: Block): void {
    block.used = 0;
    const isLarge = block.bytes.length === LARGE_BLOCK_BYTES;
    const isUsual = block.bytes.length === BLOCK_BYTES && this.#free.length < USUAL_BLOCKS;
    if (isLarge || isUsual) this.#free.push(block);
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
      if (block !== undefined) {
        yield block.bytes.subarray(0, block.used);
        // The store asks for the next piece only after it has written this one.
        this.#release(block);
      } else if (this.#failure !== null) throw this.#failure.error;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }
}

function append(block: Block, bytes: Buffer, start: number, end: number): void {
  bytes.copy(block.bytes, block.used, start, end);
  block.used += end - start;
}
