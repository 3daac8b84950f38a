/** Request lines are read in windows of this size: about 16 lines of 4 KB, or 300 short ones. */
const WINDOW_BYTES = 64 * 1024;

/** Reads into `into` from `position`; returns how many bytes, fewer at the end of the file. */
export type ReadInto = (position: number, into: Buffer) => Promise<number>;

/**
 * Serves small forward reads of a file from a window that was read ahead, without a system call or a
 * promise. It takes one buffer for each open file. It refuses reads that jump, because reading ahead would
 * be wasted on them; the caller makes those itself.
 */
export class ReadAhead {
  readonly #readInto: ReadInto;
  readonly #size: number;
  #buffer: Buffer | null = null;
  /** Range of the file in the buffer. */
  #start = 0;
  #end = 0;
  #loading: { readonly start: number; readonly end: number; readonly done: Promise<void> } | null =
    null;
  /** Where the last read ended. */
  #at: number | null = null;

  constructor(readInto: ReadInto, size: number) {
    this.#readInto = readInto;
    this.#size = size;
  }

  /** Copies the bytes into `target` if the buffer holds them. */
  serve(position: number, target: Buffer): boolean {
    const end = position + target.length;
    if (this.#buffer === null || position < this.#start || end > this.#end) return false;
    this.#buffer.copy(target, 0, position - this.#start, end - this.#start);
    this.#at = end;
    return true;
  }

  /** Whether reading ahead does not pay off for this read. Then the caller makes it by itself, and it counts as made. */
  refuses(position: number, target: Buffer): boolean {
    if (this.#isLoading(position, target) || this.#paysOff(position, target)) return false;
    this.#at = position + target.length;
    return true;
  }

  /** The same as {@link serve}, after reading ahead, for a read that is not refused. False if the file has fewer bytes. */
  async load(position: number, target: Buffer): Promise<boolean> {
    this.#at = position + target.length;
    await this.fill(position);
    return this.serve(position, target);
  }

  #paysOff(position: number, { length }: Buffer): boolean {
    if (this.#loading !== null || this.#at === null || length > WINDOW_BYTES / 2) return false;
    return position >= this.#at && position < this.#at + WINDOW_BYTES;
  }

  #isLoading(position: number, { length }: Buffer): boolean {
    const loading = this.#loading;
    return loading !== null && position >= loading.start && position + length <= loading.end;
  }

  /** Fills the window from `position` on, unless it is being filled. */
  async fill(position: number): Promise<void> {
    this.#loading ??= this.#begin(position);
    await this.#loading.done;
  }

  #begin(start: number) {
    const end = Math.min(start + WINDOW_BYTES, this.#size);
    const buffer = (this.#buffer ??= Buffer.allocUnsafeSlow(Math.min(WINDOW_BYTES, this.#size)));
    // An empty range: nothing is served while the buffer is being filled.
    this.#start = this.#end = start;
    const fill = async (): Promise<void> => {
      try {
        this.#end = start + (await this.#readInto(start, buffer.subarray(0, end - start)));
      } finally {
        this.#loading = null;
      }
    };
    return { start, end, done: fill() };
  }
}
