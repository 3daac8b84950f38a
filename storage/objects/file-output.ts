import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { EarlySync } from './early-sync';
import { hasCode } from './filesystem-errors';

/** What places, lengths and addresses must be multiples of; no disk in use needs more. */
const ALIGNMENT = 4096;
/** Smaller pieces are written through the page cache, which joins them. */
const LEAST_DIRECT_BYTES = 1024 * 1024;
/** Writes past the page cache. Only Linux has it. */
const DIRECT: number | undefined = constants.O_DIRECT;

/**
 * Writes a new file from its start, with several writes in flight. Large aligned pieces go to the disk past the page
 * cache (docs/design/journal.md#direct-writes), all others through it. The caller closes both it and the file.
 */
export class FileOutput {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #writes: number;
  readonly #sync: EarlySync;
  #position = 0;
  /** Oldest first. */
  #inFlight: Promise<void>[] = [];
  /** The same file for direct writes; null if they are refused. */
  #direct: Promise<FileHandle | null> | null = null;

  /**
   * @param file the empty file at `path`, open for writing
   * @param writes how many may be in flight at once
   */
  constructor(path: string, file: FileHandle, writes: number) {
    this.#path = path;
    this.#file = file;
    this.#writes = writes;
    this.#sync = new EarlySync(file);
  }

  /** Resolves when there may be another write. @throws the error of an earlier write, or of this one */
  async write(bytes: Uint8Array): Promise<void> {
    const write = this.#writeAt(bytes, this.#position);
    // If the caller gives up first, nothing else handles it.
    write.catch(() => undefined);
    this.#inFlight.push(write);
    this.#position += bytes.length;
    while (this.#inFlight.length >= this.#writes) await this.#inFlight.shift();
  }

  /** Makes everything that was written survive power loss. @throws the error of any write */
  async finish(): Promise<void> {
    await Promise.all(this.#inFlight);
    await this.#sync.finish();
  }

  /** Waits for what is in flight. Leaves the file open. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
    const direct = await this.#direct?.catch(() => null);
    await direct?.close();
  }

  async #writeAt(bytes: Uint8Array, position: number): Promise<void> {
    let done = isAligned(position, bytes.length) ? await this.#writeDirect(bytes, position) : 0;
    this.#sync.wrote(bytes.length - done);
    while (done < bytes.length) {
      const left = bytes.length - done;
      done += (await this.#file.write(bytes, done, left, position + done)).bytesWritten;
    }
  }

  /** Returns how many bytes were written: fewer if the disk is full, none if the system refuses direct writes. */
  async #writeDirect(bytes: Uint8Array, position: number): Promise<number> {
    const direct = await (this.#direct ??= this.#openDirect());
    if (direct === null) return 0;
    try {
      return (await direct.write(bytes, 0, bytes.length, position)).bytesWritten;
    } catch (error) {
      // The file system cannot do it, or the address is not aligned.
      if (!hasCode(error, 'EINVAL')) throw error;
      this.#direct = Promise.resolve(null);
      await direct.close();
      return 0;
    }
  }

  async #openDirect(): Promise<FileHandle | null> {
    if (DIRECT === undefined) return null;
    try {
      return await open(this.#path, constants.O_WRONLY | DIRECT);
    } catch (error) {
      if (!hasCode(error, 'EINVAL')) throw error;
      return null;
    }
  }
}

function isAligned(position: number, length: number): boolean {
  return length >= LEAST_DIRECT_BYTES && position % ALIGNMENT === 0 && length % ALIGNMENT === 0;
}
