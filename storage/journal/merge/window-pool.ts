import type { MergeMemory } from '../../../core/journal/merge-memory';

/** Memory of all windows of a merge together. */
const MAX_BYTES = 24 * 1024 * 1024;
/** Every read costs the event loop about 50 µs, and larger windows save little more. */
const LARGEST_BYTES = 512 * 1024;
/** Windows that are read before they are needed. */
const WINDOWS_AHEAD = 16;

/**
 * Read buffers for the sources of a merge. Their size depends on how many sources are open at once, so that
 * all together take 24 MiB for a batch of any size. A buffer that one source returns is reused by the next.
 */
export class WindowPool {
  readonly windowBytes: number;
  readonly #windows: number;
  #free: Buffer[] = [];
  #used = 0;
  #memory: Pick<MergeMemory, 'take'> | null = null;

  /** @param largestSource bytes; a window is never larger */
  constructor(openSources: number, largestSource = LARGEST_BYTES) {
    this.#windows = openSources + WINDOWS_AHEAD;
    const most = Math.min(LARGEST_BYTES, largestSource);
    this.windowBytes = Math.min(most, Math.floor(MAX_BYTES / this.#windows));
  }

  /** Of all windows that the pool is made for. */
  get bytes(): number {
    return this.#windows * this.windowBytes;
  }

  /** Takes its windows from there, while there is room. */
  useMemory(memory: Pick<MergeMemory, 'take'>): void {
    this.#memory = memory;
  }

  /** Whether there is a window to read ahead into, once each open source has one. */
  get hasSpare(): boolean {
    return this.#used < this.#windows;
  }

  acquire(): Buffer {
    this.#used++;
    return this.#free.pop() ?? this.#memory?.take(this.windowBytes) ?? this.#newWindow();
  }

  release(window: Buffer): void {
    this.#used--;
    this.#free.push(window);
  }

  #newWindow(): Buffer {
    return Buffer.allocUnsafeSlow(this.windowBytes);
  }
}
