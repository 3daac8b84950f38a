import type { DropCode } from '../drop-codes';
import {
  QueuedRequest,
  type DispatchedBy,
  type RequestOptions,
  type RequestOwner,
} from '../queue/queued-request';
import type { RequestQueueController } from './request-queue-controller';

/** A request that was given up unserved. `code` says why. */
export class RequestDropped extends Error {
  readonly code: DropCode;

  constructor(code: DropCode) {
    super(`the request was not served: ${code}`);
    this.name = 'RequestDropped';
    this.code = code;
  }
}

/** A dispatched request, and how it got there. */
export interface Admitted {
  readonly request: QueuedRequest;
  readonly by: DispatchedBy;
}

/**
 * Hands over a request and waits for its dispatch. For callers that await; others implement
 * {@link RequestOwner}, because a promise costs more than the queue. The caller must report the end.
 *
 * @throws RequestDropped if the request leaves unserved
 */
export function admitted(
  controller: RequestQueueController,
  options: RequestOptions,
): Promise<Admitted> {
  return new Promise((resolve, reject) => {
    controller.tryEnqueue(new QueuedRequest(options, new AwaitingOwner(resolve, reject)));
  });
}

/** Settles a promise. A class, because two closures would cost more memory. */
class AwaitingOwner implements RequestOwner {
  readonly #resolve: (admitted: Admitted) => void;
  readonly #reject: (reason: RequestDropped) => void;

  constructor(resolve: (admitted: Admitted) => void, reject: (reason: RequestDropped) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  dispatched(request: QueuedRequest, by: DispatchedBy): void {
    this.#resolve({ request, by });
  }

  dropped(_request: QueuedRequest, code: DropCode): void {
    this.#reject(new RequestDropped(code));
  }
}
