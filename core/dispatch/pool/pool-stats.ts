import { BAND, type Band, type PerBand } from '../queue/band';
import type { FairRequestQueue } from '../queue/fair-request-queue';
import type { DispatchedBy } from '../queue/queued-request';
import { saturation } from './back-pressure';
import type { Bounds } from './gate';
import type { RequestPump } from './request-pump';
import type { WaitingRoom } from './waiting-room';

/** A snapshot of one band of a pool. */
export interface BandStats {
  readonly queued: number;
  /** Requests in flight that count in the stock of this band. Urgent lines may count as standard. */
  readonly inFlight: number;
  /** Its part of the cost that the pool dispatched in the last 10 s, 0 to 1. */
  readonly share: number;
  /** Its requests that were dispatched so far, by what made it their turn. */
  readonly dispatched: Readonly<Record<DispatchedBy, number>>;
}

/** A snapshot of a pool. */
export interface PoolStats extends Bounds {
  /** Requests in flight, and their cost as expected. */
  readonly stock: number;
  readonly stockCost: number;
  readonly queued: PerBand<number>;
  readonly queuedCost: number;
  /** Bytes of queued bodies. */
  readonly queuedBytes: number;
  /** Flows with queued requests. */
  readonly activeFlows: number;
  /** How often the pump looked for a request to dispatch, and how often it found one. */
  readonly dequeueAttempts: number;
  readonly dequeueSuccesses: number;
  /** Requests that moved a band up because of their age. */
  readonly promoted: number;
  /** Requests in flight divided by how many may be; 1 and above when the pool is full. */
  readonly saturation: number;
  readonly bands: PerBand<BandStats>;
}

/** The parts of a pool's controller. */
export interface PoolParts {
  readonly queues: PerBand<FairRequestQueue>;
  readonly room: WaitingRoom;
  readonly pump: RequestPump;
}

/** Reads what the parts of a controller count. It takes constant time. */
export function poolStats({ queues, room, pump }: PoolParts): PoolStats {
  const [critical, standard, sheddable] = queues;
  const { stock, gate, counts } = pump;
  const { readyBackends } = gate.pool;
  const band = (one: Band): BandStats => ({
    queued: queues[one].length,
    inFlight: stock.inBand(one),
    share: pump.window.shareOf(one),
    dispatched: { ...pump.dispatchedOf(one) },
  });
  return {
    ...gate.bounds,
    stock: stock.requests,
    stockCost: stock.cost,
    queued: [critical.length, standard.length, sheddable.length],
    queuedCost: sum(queues.map(({ cost }) => cost)),
    queuedBytes: room.capacity.bytes,
    activeFlows: sum(queues.map(({ backlogged }) => backlogged)),
    dequeueAttempts: counts.attempts,
    dequeueSuccesses: counts.successes,
    promoted: room.promoted,
    saturation: saturation({ stock: stock.requests, fullAt: gate.fullAt, readyBackends }),
    bands: [band(BAND.critical), band(BAND.standard), band(BAND.sheddable)],
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
