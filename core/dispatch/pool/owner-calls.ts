import type { DropCode } from '../drop-codes';
import type { DispatchedBy, QueuedRequest } from '../queue/queued-request';

/** Calls owners of requests. An owner that throws must not stop the requests of others. */
export class OwnerCalls {
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** Returns false if the owner threw, so that nothing will report the end of the request. */
  dispatched(request: QueuedRequest, by: DispatchedBy): boolean {
    try {
      request.owner.dispatched(request, by);
      return true;
    } catch (error) {
      this.#onError(error);
      return false;
    }
  }

  dropped(request: QueuedRequest, code: DropCode): void {
    try {
      request.evictAndCancel(code);
    } catch (error) {
      this.#onError(error);
    }
  }

  reclaimed(request: QueuedRequest): void {
    try {
      request.owner.reclaimed?.(request);
    } catch (error) {
      this.#onError(error);
    }
  }
}
