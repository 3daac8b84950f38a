import type { ServerResponse } from 'node:http';
import type { DropCode } from '../../core/dispatch/drop-codes';
import {
  QueuedRequest,
  type DispatchedBy,
  type RequestOptions,
  type RequestOwner,
} from '../../core/dispatch/queue/queued-request';
import type { GatewayPool } from '../pools/gateway-pool';
import type { PoolBackend, Sending } from '../pools/pool-backend';
import type { RequestMeter } from './request-meter';

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
  readonly meter: RequestMeter;
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
  #isQueued = false;
  #request: QueuedRequest | null = null;

  constructor(options: AdmissionOptions, resolve: Resolve) {
    this.#options = options;
    this.#resolve = resolve;
  }

  begin(request: QueuedRequest): void {
    const { pool, meter, response } = this.#options;
    this.#request = request;
    if (response.closed || response.destroyed) {
      request.evictAndCancel('client_closed');
      return;
    }
    pool.controller.tryEnqueue(request);
    if (request.state !== 'queued') return;
    this.#isQueued = true;
    meter.queued();
    response.once('close', this.#onClose);
  }

  dispatched(request: QueuedRequest, by: DispatchedBy): void {
    const { meter, assign } = this.#options;
    this.#leaveQueue();
    meter.dispatched(request.band, by);
    this.#resolve({ request, verdict: { dropped: null, by, first: assign(request) } });
  }

  dropped(request: QueuedRequest, code: DropCode): void {
    this.#leaveQueue();
    this.#resolve({ request, verdict: { dropped: code } });
  }

  reclaimed(): void {
    this.#options.reclaimed();
  }

  readonly #onClose = (): void => {
    if (this.#request !== null) this.#options.pool.controller.cancel(this.#request);
  };

  #leaveQueue(): void {
    if (!this.#isQueued) return;
    const { meter, response } = this.#options;
    meter.leftQueue();
    this.#isQueued = false;
    response.off('close', this.#onClose);
  }
}
