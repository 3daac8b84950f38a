/** Memory of all windows of a merge together. */
const MAX_BYTES = 16 * 1024 * 1024;
const LARGEST_BYTES = 256 * 1024;
/** Smaller reads are no cheaper, and the store may do them synchronously on the event loop. */
const SMALLEST_BYTES = 128 * 1024;

/**
 * Read buffers for the sources of a merge. Their size depends on how many sources are open at once, so that
 * all together take 16 MiB for a batch of any size. A buffer that one source returns is reused by the next.
 */
export class WindowPool {
  readonly windowBytes: number;
  /** Whether every source gets a second buffer for its next window. */
  readonly readsAhead: boolean;
  #free: Buffer[] = [];

  constructor(openSources: number) {
    const share = MAX_BYTES / (2 * Math.max(1, openSources));
    this.windowBytes = Math.min(LARGEST_BYTES, Math.max(SMALLEST_BYTES, share));
    this.readsAhead = share >= SMALLEST_BYTES;
  }

  acquire(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.windowBytes);
  }

  release(window: Buffer): void {
    this.#free.push(window);
  }
}
