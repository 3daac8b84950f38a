import type { DropCode } from '../drop-codes';
import { BAND, type Band, type PerBand } from '../queue/band';
import type { FairRequestQueue } from '../queue/fair-request-queue';
import type { QueuedRequest } from '../queue/queued-request';
import type { FairRequestQueueSettings } from './pool-settings';

const NONE: readonly QueuedRequest[] = [];

/**
 * Decides which requests may wait, by number and by bytes (docs/design/flow-control.md#capacity). The
 * limits of the sheddable band lie inside the totals, so batches never use up the rest.
 */
export class Capacity {
  readonly #settings: FairRequestQueueSettings;
  readonly #queues: PerBand<FairRequestQueue>;
  /** Bytes of queued requests, by band. */
  readonly #queued: [number, number, number] = [0, 0, 0];

  constructor(settings: FairRequestQueueSettings, queues: PerBand<FairRequestQueue>) {
    this.#settings = settings;
    this.#queues = queues;
  }

  /** Queued requests of all bands. */
  get length(): number {
    const queues = this.#queues;
    return queues[0].length + queues[1].length + queues[2].length;
  }

  /** Bytes of queued requests. */
  get bytes(): number {
    return this.#queued[0] + this.#queued[1] + this.#queued[2];
  }

  /** Why a request may not wait, not even after evictions; null if it may. */
  refusal(request: QueuedRequest): DropCode | null {
    return this.#refusalByNumber(request) ?? this.#refusalByBytes(request);
  }

  /**
   * Evicts until there is room for a request that is not refused, from the lowest band first. The evicted
   * requests are off the queue, but their owners are not told yet.
   */
  makeRoom({ band, bytes }: QueuedRequest): readonly QueuedRequest[] {
    if (this.#hasRoom(bytes)) return NONE;
    const evicted: QueuedRequest[] = [];
    while (!this.#hasRoom(bytes)) {
      const request = this.#evictBelow(band);
      if (request === null) break;
      this.onLeft(request);
      evicted.push(request);
    }
    return evicted;
  }

  onQueued({ band, bytes }: QueuedRequest): void {
    this.#queued[band] += bytes;
  }

  onLeft({ band, bytes }: QueuedRequest): void {
    this.#queued[band] -= bytes;
  }

  /** Whether a request that waits in another band may move into `band`, which evicts nothing. */
  hasPlaceFor(request: QueuedRequest, band: Band): boolean {
    const queued = this.#queues[band].table.find(request.tenant, request.model)?.size ?? 0;
    return queued < this.#settings.flowCapacity && (queued > 0 || this.#canGuarantee(band));
  }

  #hasRoom(bytes: number): boolean {
    const { totalCapacity, queueBytes } = this.#settings;
    return this.length < totalCapacity && this.bytes + bytes <= queueBytes;
  }

  #refusalByBytes({ band, bytes }: QueuedRequest): DropCode | null {
    const { queueBytes, sheddableBytes } = this.#settings;
    if (band === BAND.sheddable && this.#queued[band] + bytes > sheddableBytes) {
      return 'queue_bytes_exceeded';
    }
    const fits = this.bytes + bytes - this.#evictableBytes(band) <= queueBytes;
    return fits ? null : 'queue_bytes_exceeded';
  }

  #refusalByNumber({ band, flow }: QueuedRequest): DropCode | null {
    const { totalCapacity, flowCapacity, sheddableCapacity } = this.#settings;
    const queued = flow?.size ?? 0;
    const code = queued === 0 ? 'too_many_flows' : 'insufficient_flow_capacity';
    if (band === BAND.sheddable) {
      // A flow without queued requests gets one place, so that no tenant locks out another.
      const isFull = queued > 0 && this.#queues[band].length >= sheddableCapacity;
      return isFull || this.length >= totalCapacity ? code : null;
    }
    if (queued >= flowCapacity) return code;
    if (queued === 0 && !this.#canGuarantee(band)) return code;
    const isFull = this.length >= totalCapacity && this.#evictable(band) === 0;
    return isFull ? code : null;
  }

  /** Whether one more flow may become backlogged. Each critical one owns `flow_capacity` places. */
  #canGuarantee(band: Band): boolean {
    if (band !== BAND.critical) return true;
    const { flowCapacity, totalCapacity } = this.#settings;
    return (this.#queues[band].backlogged + 1) * flowCapacity <= totalCapacity;
  }

  #evictBelow(band: Band): QueuedRequest | null {
    const [, standard, sheddable] = this.#queues;
    if (band < BAND.sheddable && sheddable.length > 0) return sheddable.evict();
    return band < BAND.standard ? standard.evict() : null;
  }

  #evictable(band: Band): number {
    if (band === BAND.sheddable) return 0;
    const standard = band === BAND.critical ? this.#queues[BAND.standard].length : 0;
    return standard + this.#queues[BAND.sheddable].length;
  }

  #evictableBytes(band: Band): number {
    if (band === BAND.sheddable) return 0;
    const standard = band === BAND.critical ? this.#queued[BAND.standard] : 0;
    return standard + this.#queued[BAND.sheddable];
  }
}
