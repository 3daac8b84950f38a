import type { DropCode } from '../drop-codes';
import { BAND, BANDS, type Band, type PerBand } from '../queue/band';
import { FairRequestQueue } from '../queue/fair-request-queue';
import type { QueuedRequest, RequestFlow } from '../queue/queued-request';
import { retryAfterSec } from './back-pressure';
import { FlowSurvey } from './flow-survey';
import type { PoolState } from './gate';
import { OwnerCalls } from './owner-calls';
import type { PoolSettings } from './pool-settings';
import { poolStats, type PoolStats } from './pool-stats';
import { RequestPump } from './request-pump';
import { SlicedTask, type Defer } from './sliced-task';
import { WaitingRoom } from './waiting-room';

/** What a controller needs of its process. */
export interface ControllerPorts {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Called after 256 steps of work, to continue later. */
  readonly defer: Defer;
  /** The weight of a flow, above 0; 1 by default. */
  readonly weightOf?: (tenant: string, model: string) => number;
  /**
   * Whether a request may be dispatched now as far as its backends are concerned, for example because its
   * model has a free slot. Flows that may not are passed over until a request ends or the pool changes.
   */
  readonly mayDispatch?: (request: QueuedRequest) => boolean;
  /** A port or an owner threw, or a request completed twice. The controller goes on. */
  readonly onError: (error: unknown) => void;
}

/**
 * Admission to a pool of backends: dispatches a request on arrival, queues it, or refuses it, and dispatches
 * queued ones as the stock allows (docs/design/flow-control.md#the-controller).
 *
 * It is synchronous and has no threads, locks or timers. The driver calls `tick` every 100 ms, `updatePool`
 * when its backends change, and `onRequestComplete` when an exchange has ended. Owners are called when the
 * state of the controller is consistent, so they may call it in turn.
 */
export class RequestQueueController {
  readonly #settings: PoolSettings;
  readonly #ports: ControllerPorts;
  readonly #calls: OwnerCalls;
  readonly #queues: PerBand<FairRequestQueue>;
  readonly #room: WaitingRoom;
  readonly #pump: RequestPump;
  readonly #dispatching: SlicedTask;
  readonly #expiry: SlicedTask;
  #isClosed = false;

  constructor(settings: PoolSettings, ports: ControllerPorts) {
    const { now, defer, mayDispatch = null, onError } = ports;
    this.#settings = settings;
    this.#ports = ports;
    this.#calls = new OwnerCalls(onError);
    this.#queues = createQueues(settings, ports);
    const parts = { settings, queues: this.#queues, calls: this.#calls };
    const room = new WaitingRoom({ ...parts, nowMs: now() });
    const pump = new RequestPump({ ...parts, room, mayDispatch, onError });
    this.#room = room;
    this.#pump = pump;
    this.#dispatching = new SlicedTask((nowMs) => pump.dispatchNext(nowMs), now, defer);
    this.#expiry = new SlicedTask((nowMs) => room.handleDue(nowMs), now, defer);
  }

  /** The flow of a request, for its expected output. Do not keep it: idle flows are forgotten. */
  flowOf(band: Band, tenant: string, model: string): RequestFlow {
    return this.#queues[band].table.flowOf(tenant, model);
  }

  /** Requests in flight that count in a band. */
  inFlight(band: Band): number {
    return this.#pump.stock.inBand(band);
  }

  /** Hands over a new request. Its owner is told what becomes of it, possibly before this returns. */
  tryEnqueue(request: QueuedRequest): void {
    try {
      if (request.state !== 'new') throw new Error(`a request that is ${request.state} came again`);
      const refusal = this.#admit(request, this.#ports.now());
      if (refusal !== null) this.#calls.dropped(request, refusal);
    } catch (error) {
      // Fail closed: a request that cannot be judged is refused.
      this.#ports.onError(error);
      if (request.state === 'new') this.#calls.dropped(request, 'internal');
    }
  }

  /** Counts a request that goes to the backends without asking, for example a session. */
  onRequestScheduled(request: QueuedRequest): void {
    this.#pump.advance(this.#ports.now());
    this.#pump.bypass(request);
  }

  /**
   * The exchange of a dispatched request with its backend is over, whatever the outcome. Call it exactly
   * once; further calls are reported and have no effect.
   *
   * @param cost what it really cost
   */
  onRequestComplete(request: QueuedRequest, cost = request.cost): void {
    if (request.state !== 'dispatched') {
      this.#ports.onError(new Error(`a request that is ${request.state} cannot complete`));
      return;
    }
    this.#pump.end(request, cost);
    this.#dispatch(this.#ports.now());
  }

  /** The client is gone. Returns whether the request was queued; the owner aborts dispatched ones itself. */
  cancel(request: QueuedRequest): boolean {
    return this.#room.drop(request, 'client_closed');
  }

  /** Its driver gives up a queued request. Returns whether it was queued. */
  drop(request: QueuedRequest, code: DropCode): boolean {
    return this.#room.drop(request, code);
  }

  /** Dispatches what may be dispatched now. Every method that can open the gate calls it. */
  pump(): void {
    this.#dispatch(this.#ports.now());
  }

  /** To be called every 100 ms: times to live, promotion by age, clean-up, floors, reclaim. */
  tick(): void {
    const nowMs = this.#ports.now();
    this.#room.cleanUp(nowMs);
    this.#expiry.run(nowMs);
    this.#dispatch(nowMs);
    this.#pump.abortForHigherBands(nowMs);
  }

  /** Backends became ready or not, or a limit changed. */
  updatePool(pool: PoolState): void {
    const nowMs = this.#ports.now();
    this.#room.onPoolChanged(pool.readyBackends, nowMs);
    this.#pump.pool = pool;
    this.#dispatch(nowMs);
  }

  /** Drops every queued request and refuses new ones. Dispatched ones end as usual. */
  close(): void {
    this.#isClosed = true;
    const { now, defer } = this.#ports;
    new SlicedTask(() => this.#room.dropAny('shutting_down'), now, defer).run(now());
  }

  /** After how many seconds a refused client of `band` should try again. */
  retryAfterSec(band: Band): number {
    const ahead = BANDS.filter((other) => other <= band).map((other) => this.#queues[other].cost);
    return retryAfterSec(sum(ahead), this.#pump.window.ratePerSec);
  }

  stats(): PoolStats {
    return poolStats({ queues: this.#queues, room: this.#room, pump: this.#pump });
  }

  /** A survey of the flows, not yet begun; it finds the `most` longest ones. */
  survey(most: number): FlowSurvey {
    return new FlowSurvey(this.#queues, most, this.#ports.now());
  }

  #dispatch(nowMs: number): void {
    this.#pump.advance(nowMs);
    this.#dispatching.run(nowMs);
  }

  /** Dispatches or queues a request; returns why it is refused, or null. */
  #admit(request: QueuedRequest, nowMs: number): DropCode | null {
    if (this.#isClosed) return 'shutting_down';
    if (nowMs >= (request.deadlineMs ?? Infinity)) return 'deadline_exceeded';
    this.#pump.advance(nowMs);
    request.flow = this.flowOf(request.band, request.tenant, request.model);
    if (this.#pump.mayBypass(request)) {
      this.#pump.bypass(request);
      return null;
    }
    const { enqueue } = this.#settings.fairRequestQueue;
    if (enqueue === 'critical' && request.band !== BAND.critical) return 'not_critical';
    const refusal = this.#room.enter(request, nowMs);
    if (refusal === null) this.#dispatching.run(nowMs);
    return refusal;
  }
}

function createQueues(
  { fairRequestQueue: { scheduler } }: PoolSettings,
  { weightOf = () => 1 }: ControllerPorts,
): PerBand<FairRequestQueue> {
  const create = () => new FairRequestQueue({ scheduler, weightOf });
  return [create(), create(), create()];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
