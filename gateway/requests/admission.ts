import type { ServerResponse } from 'node:http';
import type { DropCode } from '../../core/dispatch/drop-codes';
import {
  QueuedRequest,
  type DispatchedBy,
  type RequestOptions,
  type RequestOwner,
} from '../../core/dispatch/queue/queued-request';
import type { GatewayMetrics } from '../../platform/gateway-metrics';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend, Sending } from '../pools/pool-backend';
import { bandName } from '../pools/settings';

/** A request that was sent to a backend, or is about to be. */
export interface Assignment {
  readonly backend: PoolBackend;
  readonly sending: Sending;
}

/** What became of a request in the queue. */
export type Verdict =
  | { readonly dropped: DropCode }
  | { readonly dropped: null; readonly by: DispatchedBy; readonly first: Assignment | null };

/** What {@link admit} needs besides the request. */
export interface AdmissionOptions {
  readonly pool: GatewayPool;
  readonly metrics: GatewayMetrics;
  /** Chooses a backend, at the moment of the dispatch. */
  readonly assign: (request: QueuedRequest) => Assignment | null;
  /** Called while it is in flight, if its place is needed. */
  readonly reclaimed: () => void;
  readonly response: ServerResponse;
}

/**
 * Hands a request to the controller of its pool and waits until it is dispatched or dropped. A client that closes
 * its connection meanwhile is dropped at once.
 */
export function admit(
  request: Omit<RequestOptions, 'owner'>,
  options: AdmissionOptions,
): Promise<{ readonly request: QueuedRequest; readonly verdict: Verdict }> {
  return new Promise((resolve) => {
    const owner = new Admission(options, resolve);
    owner.begin(new QueuedRequest({ ...request, owner }));
  });
}

type Resolve = (settled: { request: QueuedRequest; verdict: Verdict }) => void;

class Admission implements RequestOwner {
  readonly #options: AdmissionOptions;
  readonly #resolve: Resolve;
  /** The label under which it counts as queued; null while it does not. */
  #queuedAs: string | null = null;
  #request: QueuedRequest | null = null;

  constructor(options: AdmissionOptions, resolve: Resolve) {
    this.#options = options;
    this.#resolve = resolve;
  }

  begin(request: QueuedRequest): void {
    const { pool, metrics, response } = this.#options;
    this.#request = request;
    if (response.closed || response.destroyed) {
      request.evictAndCancel('client_closed');
      return;
    }
    pool.controller.tryEnqueue(request);
    if (request.state !== 'queued') return;
    const label = metrics.models.hold(request.model);
    this.#queuedAs = label;
    metrics.queueLength.inc({ model: label, targetModel: label });
    response.once('close', this.#onClose);
  }

  dispatched(request: QueuedRequest, by: DispatchedBy): void {
    const { metrics, assign } = this.#options;
    this.#leaveQueue(request);
    const model = metrics.models.of(request.model);
    if (by === 'bypass') metrics.bypassRate.inc({ model, targetModel: model });
    metrics.dispatched.inc({ band: bandName(request.band), by });
    this.#resolve({ request, verdict: { dropped: null, by, first: assign(request) } });
  }

  dropped(request: QueuedRequest, code: DropCode): void {
    this.#leaveQueue(request);
    this.#resolve({ request, verdict: { dropped: code } });
  }

  reclaimed(): void {
    this.#options.reclaimed();
  }

  readonly #onClose = (): void => {
    if (this.#request !== null) this.#options.pool.controller.cancel(this.#request);
  };

  #leaveQueue({ model }: QueuedRequest): void {
    if (this.#queuedAs === null) return;
    const { metrics, response } = this.#options;
    const label = metrics.models.release(model);
    metrics.queueLength.dec({ model: label, targetModel: label });
    this.#queuedAs = null;
    response.off('close', this.#onClose);
  }
}
