/** How many bytes a {@link SpoolRoom} has. */
export interface SpoolRoomOptions {
  /** `spool.max_bytes`. */
  readonly maxBytes: number;
  /** `spool.sheddable_bytes`: the part of it that sheddable requests may use. */
  readonly sheddableBytes: number;
}

/**
 * Bounds the bytes in the spool. If a request above `sheddable` finds no room, sheddable requests that have not been
 * dispatched give way, the newest first (docs/design/audio.md#spool).
 */
export class SpoolRoom {
  readonly #options: SpoolRoomOptions;
  readonly #evictable = new Set<SpoolPlace>();
  #bytes = 0;
  #sheddableBytes = 0;

  constructor(options: SpoolRoomOptions) {
    this.#options = options;
  }

  /** Bytes that are reserved now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The bytes that all requests together may reserve. */
  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  /** A place for one body, empty at first. */
  place(isSheddable: boolean): SpoolPlace {
    return new SpoolPlace(isSheddable, {
      makeRoom: (bytes) => this.#makeRoom(isSheddable, bytes),
      add: (bytes) => this.#add(bytes, isSheddable),
      evictable: this.#evictable,
    });
  }

  #add(bytes: number, isSheddable: boolean): void {
    this.#bytes += bytes;
    if (isSheddable) this.#sheddableBytes += bytes;
  }

  /** Evicts nothing if that would not make enough room. */
  #makeRoom(isSheddable: boolean, bytes: number): boolean {
    const { maxBytes, sheddableBytes } = this.#options;
    if (isSheddable && this.#sheddableBytes + bytes > sheddableBytes) return false;
    let missing = this.#bytes + bytes - maxBytes;
    if (missing <= 0) return true;
    if (isSheddable) return false;
    const victims: SpoolPlace[] = [];
    for (const victim of [...this.#evictable].reverse()) {
      if (missing <= 0) break;
      victims.push(victim);
      missing -= victim.held;
    }
    if (missing > 0) return false;
    for (const victim of victims) victim.evict();
    return this.#bytes + bytes <= maxBytes;
  }
}

/** What a place uses of its room. */
interface Ledger {
  makeRoom(bytes: number): boolean;
  /** Counts bytes that are reserved, or given back if negative. */
  add(bytes: number): void;
  readonly evictable: Set<SpoolPlace>;
}

/** The reserved bytes of one body. */
export class SpoolPlace {
  readonly isSheddable: boolean;
  readonly #ledger: Ledger;
  #held = 0;
  #onEvicted: (() => void) | null = null;
  #isReleased = false;

  constructor(isSheddable: boolean, ledger: Ledger) {
    this.isSheddable = isSheddable;
    this.#ledger = ledger;
  }

  /** Bytes that are reserved. */
  get held(): number {
    return this.#held;
  }

  /** Reserves more bytes, if need be at the cost of sheddable bodies. Returns false if there is no room. */
  reserve(bytes: number): boolean {
    if (this.#isReleased || !this.#ledger.makeRoom(bytes)) return false;
    this.#held += bytes;
    this.#ledger.add(bytes);
    return true;
  }

  /**
   * Allows a sheddable body to give way to others; null forbids it, as at first. `onEvicted` is called at most once, and
   * must release the place before it returns.
   */
  evictable(onEvicted: (() => void) | null): void {
    this.#onEvicted = onEvicted;
    if (onEvicted !== null && this.isSheddable) this.#ledger.evictable.add(this);
    else this.#ledger.evictable.delete(this);
  }

  /** Makes way for another body. */
  evict(): void {
    const onEvicted = this.#onEvicted;
    this.evictable(null);
    onEvicted?.();
  }

  /** Gives everything back. From then on nothing can be reserved. */
  release(): void {
    this.#isReleased = true;
    this.evictable(null);
    this.#ledger.add(-this.#held);
    this.#held = 0;
  }
}
