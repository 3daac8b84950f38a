import type { FastifyReply } from 'fastify';
import type { DropCode } from '../../core/dispatch/drop-codes';
import type {
  DispatchedBy,
  QueuedRequest,
  RequestOwner,
} from '../../core/dispatch/queue/queued-request';
import type { GatewayPool } from '../pools/gateway-pool';
import type { RequestMeter } from './request-meter';

/** What an {@link Admission} does for its request. Exactly one of `onDispatched` and `onDropped` is called, once. */
export interface AdmissionPorts {
  readonly pool: GatewayPool;
  readonly meter: RequestMeter;
  readonly reply: Pick<FastifyReply, 'raw'>;
  /** Sends it to a backend, which must be chosen before this returns. It must not throw. */
  onDispatched(by: DispatchedBy): void;
  /** It left the queue unserved. It must not throw. */
  onDropped(code: DropCode): void;
  /** Called while it is in flight, if its place is needed. */
  reclaim(): void;
}

/** The way of one request through the queue of its pool: it owns the request there. */
export class Admission implements RequestOwner {
  readonly #ports: AdmissionPorts;
  #request: QueuedRequest | null = null;
  /** Set while the request waits. */
  #onClose: (() => void) | null = null;

  constructor(ports: AdmissionPorts) {
    this.#ports = ports;
  }

  /**
   * Hands a request to the controller of its pool, which dispatches or drops it, now or later. A client that closes
   * its connection meanwhile is dropped at once. Call it once.
   */
  enter(request: QueuedRequest): void {
    const { pool, meter, reply } = this.#ports;
    this.#request = request;
    if (reply.raw.closed || reply.raw.destroyed) {
      request.evictAndCancel('client_closed');
      return;
    }
    pool.controller.tryEnqueue(request);
    if (request.state !== 'queued') return;
    meter.queued();
    this.#onClose = () => this.#cancel();
    reply.raw.once('close', this.#onClose);
  }

  dispatched(request: QueuedRequest, by: DispatchedBy): void {
    const { meter } = this.#ports;
    this.#leaveQueue();
    meter.dispatched(request.band, by);
    this.#ports.onDispatched(by);
  }

  dropped(_request: QueuedRequest, code: DropCode): void {
    this.#leaveQueue();
    this.#ports.onDropped(code);
  }

  reclaimed(): void {
    this.#ports.reclaim();
  }

  #cancel(): void {
    if (this.#request !== null) this.#ports.pool.controller.cancel(this.#request);
  }

  #leaveQueue(): void {
    if (this.#onClose === null) return;
    const { meter, reply } = this.#ports;
    meter.leftQueue();
    reply.raw.off('close', this.#onClose);
    this.#onClose = null;
  }
}
