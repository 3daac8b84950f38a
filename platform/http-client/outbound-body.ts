/** A request body that is read while it is sent, so that it is never in memory as a whole. */
export interface StreamedBody {
  /** Its length, sent as `content-length`; null sends chunks. A source of another length fails the request. */
  readonly bytes: number | null;
  /** Reads the body from its start. Called at most once for each request. */
  open(): AsyncIterable<Uint8Array>;
}

/** A {@link StreamedBody} on its way out. */
export interface GuardedBody {
  readonly pieces: AsyncIterable<Uint8Array>;
  /**
   * Whether the first piece was handed over. undici writes the head of the request together with it, so
   * nothing is sent before.
   */
  hasLeft(): boolean;
}

/** What watches a body on its way out. */
export interface BodyWatch {
  /**
   * Whether the request has ended. The body must then stop by itself: undici would wait forever for its
   * connection to take the next piece.
   */
  isOver(): boolean;
  /** Asked before each piece. False stops the body, and `onStopped` is called. */
  mayLeave(): boolean;
  onStopped(): void;
  /** A piece is about to be written, so those before it are in the buffer of the socket. */
  onPiece(): void;
  /** Reading the body failed. */
  onSourceFailed(error: unknown): void;
}

/** Hands a body over piece by piece, as long as it may leave. An empty body counts as left at its end. */
export function guardBody(body: StreamedBody, watch: BodyWatch): GuardedBody {
  let hasLeft = false;
  const mayLeave = (): void => {
    if (watch.mayLeave()) return;
    watch.onStopped();
    throw new Error('the request was no longer allowed to be sent');
  };
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for await (const piece of readSource(body, watch)) {
      if (watch.isOver()) throw new Error('the request has ended');
      if (piece.length === 0) continue;
      mayLeave();
      hasLeft = true;
      watch.onPiece();
      yield piece;
    }
    if (!hasLeft) mayLeave();
    hasLeft = true;
  }
  return { pieces: pieces(), hasLeft: () => hasLeft };
}

async function* readSource(body: StreamedBody, watch: BodyWatch): AsyncGenerator<Uint8Array> {
  try {
    yield* body.open();
  } catch (error) {
    watch.onSourceFailed(error);
    throw error;
  }
}
