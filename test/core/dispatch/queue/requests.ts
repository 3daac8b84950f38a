import type { FairRequestQueue } from '../../../../core/dispatch/queue/fair-request-queue';
import {
  QueuedRequest,
  type RequestOptions,
  type RequestOwner,
} from '../../../../core/dispatch/queue/queued-request';

/** An owner that ignores what happens to its requests. */
export const SILENT_OWNER: RequestOwner = { dispatched: () => {}, dropped: () => {} };

/** A request of tenant `t` for model `m` that costs 1, unless the options say otherwise. */
export function makeRequest(options: Partial<RequestOptions> = {}): QueuedRequest {
  return new QueuedRequest({ tenant: 't', model: 'm', cost: 1, ...options }, SILENT_OWNER);
}

/** Pops until the queue is empty. */
export function popAll(queue: FairRequestQueue): QueuedRequest[] {
  const popped: QueuedRequest[] = [];
  for (let next = queue.pop(); next !== null; next = queue.pop()) popped.push(next);
  return popped;
}
