import type { FastifyReply } from 'fastify';
import type { DropCode } from '../../core/dispatch/drop-codes';
import type {
  DispatchedBy,
  QueuedRequest,
  RequestOwner,
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

/** What an {@link Admission} does for its request. */
export interface AdmissionPorts {
  readonly pool: GatewayPool;
  readonly meter: RequestMeter;
  readonly reply: Pick<FastifyReply, 'raw'>;
  /** Chooses a backend, at the moment of the dispatch. */
  assign(tried: ReadonlySet<string>): Assignment | null;
  /** Called while it is in flight, if its place is needed. */
  reclaim(): void;
}

const NONE_TRIED: ReadonlySet<string> = new Set();

/** The way of one request through the queue of its pool: it owns the request there. */
export class Admission implements RequestOwner {
  readonly #ports: AdmissionPorts;
  #isQueued = false;
  #request: QueuedRequest | null = null;
  #resolve: ((verdict: Verdict) => void) | null = null;
  #reject: ((error: unknown) => void) | null = null;

  constructor(ports: AdmissionPorts) {
    this.#ports = ports;
  }

  /**
   * Hands a request to the controller of its pool and waits until it is dispatched or dropped. A client that closes
   * its connection meanwhile is dropped at once. Call it once.
   */
  enter(request: QueuedRequest): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#begin(request);
    });
  }

  dispatched(request: QueuedRequest, by: DispatchedBy): void {
    const { meter } = this.#ports;
    this.#leaveQueue();
    meter.dispatched(request.band, by);
    try {
      this.#resolve?.({ dropped: null, by, first: this.#ports.assign(NONE_TRIED) });
    } catch (error) {
      // The controller would only log it, and the client would wait for ever.
      this.#reject?.(error);
    }
  }

  dropped(_request: QueuedRequest, code: DropCode): void {
    this.#leaveQueue();
    this.#resolve?.({ dropped: code });
  }

  reclaimed(): void {
    this.#ports.reclaim();
  }

  #begin(request: QueuedRequest): void {
    const { pool, meter, reply } = this.#ports;
    this.#request = request;
    if (reply.raw.closed || reply.raw.destroyed) {
      request.evictAndCancel('client_closed');
      return;
    }
    pool.controller.tryEnqueue(request);
    if (request.state !== 'queued') return;
    this.#isQueued = true;
    meter.queued();
    reply.raw.once('close', this.#onClose);
  }

  readonly #onClose = (): void => {
    if (this.#request !== null) this.#ports.pool.controller.cancel(this.#request);
  };

  #leaveQueue(): void {
    if (!this.#isQueued) return;
    const { meter, reply } = this.#ports;
    meter.leftQueue();
    this.#isQueued = false;
    reply.raw.off('close', this.#onClose);
  }
}
