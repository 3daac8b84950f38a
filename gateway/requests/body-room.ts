import type { BodyPlace } from '../../http/bodies/body-place';

/** How many bytes a {@link BodyRoom} has, and which bodies give way. */
export interface BodyRoomOptions {
  /** `queue_bytes`. */
  readonly bytes: number;
  /** `sheddable_bytes`: the part of it that sheddable requests may use. */
  readonly sheddableBytes: number;
  /** `body_grace`: a body that has not grown for so long gives way to others, ms. */
  readonly slowAfterMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/**
 * Bounds the bodies that the gateway receives at a time, over all pools, because the pool of a request is not known
 * before its body is. If there is no room for more bytes, slow bodies give way
 * (docs/design/gateway.md#bodies-that-arrive).
 */
export class BodyRoom {
  readonly #options: BodyRoomOptions;
  #bytes = 0;
  #sheddableBytes = 0;
  /** Places that may be taken away, the one that has not grown for the longest first. */
  readonly #sheddable = new Set<Place>();
  readonly #others = new Set<Place>();

  constructor(options: BodyRoomOptions) {
    this.#options = options;
  }

  /** Bytes that are reserved now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A place for one body, empty at first. */
  place(isSheddable: boolean): BodyPlace {
    const places = isSheddable ? this.#sheddable : this.#others;
    return new Place(isSheddable, places, this);
  }

  /** Reserves bytes for a place, if need be at the cost of slow bodies. Returns false if there is no room. */
  grow(place: Place, bytes: number): boolean {
    const nowMs = this.#options.now();
    if (!this.#makeRoom(place, bytes, nowMs)) return false;
    this.add(bytes, place.isSheddable);
    place.grewAtMs = nowMs;
    return true;
  }

  /** Counts bytes that are reserved, or given back if negative. */
  add(bytes: number, isSheddable: boolean): void {
    this.#bytes += bytes;
    if (isSheddable) this.#sheddableBytes += bytes;
  }

  /** Evicts nothing if that would not make enough room. */
  #makeRoom(place: Place, bytes: number, nowMs: number): boolean {
    let missing = this.#missing(place, bytes);
    if (missing <= 0) return true;
    const victims: Place[] = [];
    for (const slow of this.#slowPlaces(place, nowMs - this.#options.slowAfterMs)) {
      if (slow === place) return false;
      victims.push(slow);
      missing -= slow.held;
      if (missing <= 0) break;
    }
    if (missing > 0) return false;
    for (const victim of victims) victim.evict();
    return true;
  }

  #missing({ isSheddable }: Place, bytes: number): number {
    const { bytes: total, sheddableBytes } = this.#options;
    const missing = this.#bytes + bytes - total;
    if (!isSheddable) return missing;
    return Math.max(missing, this.#sheddableBytes + bytes - sheddableBytes);
  }

  /** Bodies that have not grown since then and may give way to this one: sheddable ones first, the slowest first. */
  *#slowPlaces({ isSheddable }: Place, sinceMs: number): Generator<Place> {
    for (const places of isSheddable ? [this.#sheddable] : [this.#sheddable, this.#others]) {
      for (const place of places) {
        if (place.grewAtMs > sinceMs) break;
        yield place;
      }
    }
  }
}

/** The place of one body. */
class Place implements BodyPlace {
  readonly isSheddable: boolean;
  /** Bytes that are reserved. */
  held = 0;
  /** When bytes were last reserved, ms. */
  grewAtMs = 0;
  readonly #places: Set<Place>;
  readonly #room: BodyRoom;
  #onEvicted: (() => void) | null = null;
  #isReleased = false;

  constructor(isSheddable: boolean, places: Set<Place>, room: BodyRoom) {
    this.isSheddable = isSheddable;
    this.#places = places;
    this.#room = room;
  }

  reserve(bytes: number): boolean {
    if (this.#isReleased || !this.#room.grow(this, bytes)) return false;
    this.held += bytes;
    // The last one is the one that grew last.
    this.#places.delete(this);
    if (this.#onEvicted !== null) this.#places.add(this);
    return true;
  }

  evictable(onEvicted: (() => void) | null): void {
    this.#onEvicted = onEvicted;
    if (onEvicted === null) this.#places.delete(this);
  }

  release(): void {
    this.#isReleased = true;
    this.evictable(null);
    this.#room.add(-this.held, this.isSheddable);
    this.held = 0;
  }

  /** Frees the bytes, then tells the owner of the body. */
  evict(): void {
    const onEvicted = this.#onEvicted;
    this.release();
    onEvicted?.();
  }
}
