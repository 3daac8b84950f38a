/** Of all windows of a merge together. */
const MAX_BYTES = 16 * 1024 * 1024;
const LARGEST_BYTES = 256 * 1024;
/** Smaller reads are no cheaper, and a store may make them on the event loop. */
const SMALLEST_BYTES = 128 * 1024;

/**
 * The windows through which sources are read, for as many of them as are open at once: 16 MiB
 * together, whatever the size of the batch. What one source has done with, the next one fills.
 */
export class WindowPool {
  readonly windowBytes: number;
  /** Whether there is room for each source's next window too. */
  readonly readsAhead: boolean;
  #free: Buffer[] = [];

  constructor(openSources: number) {
    const share = MAX_BYTES / (2 * Math.max(1, openSources));
    this.windowBytes = Math.min(LARGEST_BYTES, Math.max(SMALLEST_BYTES, share));
    this.readsAhead = share >= SMALLEST_BYTES;
  }

  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.windowBytes);
  }

  /** Takes back what `take` gave. */
  give(window: Buffer): void {
    this.#free.push(window);
  }
}
