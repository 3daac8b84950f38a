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
  options: Omit<RequestOptions, 'owner'>,
): Promise<Admitted> {
  return new Promise((resolve, reject) => {
    const owner: RequestOwner = {
      dispatched: (request, by) => resolve({ request, by }),
      dropped: (_request, code) => reject(new RequestDropped(code)),
    };
    controller.tryEnqueue(new QueuedRequest({ ...options, owner }));
  });
}
