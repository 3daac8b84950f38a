import fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { OnSettled } from '../../core/async/tell';

/**
 * An open file, which it owns, whose reads take a callback: cheaper than the promises of a {@link FileHandle}
 * (docs/design/execution.md#lines-that-are-read-alone).
 */
export class CallbackFile {
  readonly #file: FileHandle;
  #reads = 0;
  #closing: Promise<void> | null = null;
  #onIdle: () => void = () => undefined;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Fills `into` from `position` on, or as far as the file goes. */
  read(position: number, into: Buffer, onRead: OnSettled<number>): void {
    if (this.#closing !== null) return onRead(null, new Error('the file is closed'));
    this.#reads++;
    this.#readRest({ position, into, done: 0 }, (bytesRead, error) => {
      if (--this.#reads === 0) this.#onIdle();
      onRead(bytesRead, error);
    });
  }

  #readRest({ position, into, done }: Rest, onRead: OnSettled<number>): void {
    const left = into.length - done;
    fs.read(this.#file.fd, into, done, left, position + done, (error, bytesRead) => {
      if (error !== null) onRead(null, error);
      else if (bytesRead === 0 || bytesRead === left) onRead(done + bytesRead, null);
      else this.#readRest({ position, into, done: done + bytesRead }, onRead);
    });
  }

  /** Waits for reads that run: the number of a closed file soon is that of another one. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    if (this.#reads > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    await this.#file.close();
  }
}

/** What is left of a read. */
interface Rest {
  readonly position: number;
  readonly into: Buffer;
  /** Bytes that are there. */
  readonly done: number;
}
