import type { BodyPlace } from '../../http/bodies/body-place';

/** How many bytes a {@link BodyRoom} has. */
export interface BodyRoomLimits {
  /** `queue_bytes`. */
  readonly bytes: number;
  /** `sheddable_bytes`: the part of it that sheddable requests may use. */
  readonly sheddableBytes: number;
}

/**
 * Bounds the bodies that the gateway receives at a time, over all pools, because the pool of a request is not known
 * before its body is (docs/design/gateway.md#bodies-that-arrive).
 */
export class BodyRoom {
  readonly #limits: BodyRoomLimits;
  #bytes = 0;
  #sheddableBytes = 0;

  constructor(limits: BodyRoomLimits) {
    this.#limits = limits;
  }

  /** Bytes that are reserved now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A place for one body, empty at first. */
  place(isSheddable: boolean): BodyPlace {
    let held = 0;
    let isReleased = false;
    return {
      reserve: (bytes) => {
        if (isReleased || !this.#fits(bytes, isSheddable)) return false;
        held += bytes;
        this.#add(bytes, isSheddable);
        return true;
      },
      release: () => {
        isReleased = true;
        this.#add(-held, isSheddable);
        held = 0;
      },
    };
  }

  #fits(bytes: number, isSheddable: boolean): boolean {
    if (this.#bytes + bytes > this.#limits.bytes) return false;
    return !isSheddable || this.#sheddableBytes + bytes <= this.#limits.sheddableBytes;
  }

  #add(bytes: number, isSheddable: boolean): void {
    this.#bytes += bytes;
    if (isSheddable) this.#sheddableBytes += bytes;
  }
}
