/** The memory that one body may use while it is received. */
export interface BodyPlace {
  /** Reserves more bytes; returns false if there is no room. */
  reserve(bytes: number): boolean;
  /**
   * Allows the place to be taken away while the body arrives; null forbids it, as at first. `onEvicted` is called at most
   * once. Then everything is given back, and its caller must drop the bytes.
   */
  evictable(onEvicted: (() => void) | null): void;
  /** Gives everything back. From then on nothing can be reserved. */
  release(): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * Where the bytes of a collected body are counted; null, the default, if they are not. The parser only reserves.
     * The route releases it, also if it gets an error in place of the body.
     */
    bodyPlace: BodyPlace | null;
  }
}
