import type { DropCode } from '../../../../core/dispatch/drop-codes';
import { BAND, type Band } from '../../../../core/dispatch/queue/band';
import type { DispatchedBy, QueuedRequest } from '../../../../core/dispatch/queue/queued-request';
import { stockBandOf, type PoolScene } from './pool-scene';

/** The product lets cost fade every 100 ms, so its shares differ by up to a part in 300. */
const FADES_IN_STEPS = 1.01;

/**
 * The rules of the controller, computed from plain lists and without any of its code. Each check throws if
 * what happened breaks a rule of docs/design/flow-control.md#invariants.
 */
export class ControllerModel {
  readonly #scene: PoolScene;
  #isDraining = true;
  /** When a request last left the queue of the critical band. */
  #freedAtMs = -Infinity;

  constructor(scene: PoolScene) {
    this.#scene = scene;
  }

  get bounds(): { lower: number; upper: number } {
    const { settings, pool } = this.#scene;
    const { watermarkPerBackend, percentageDeviationForBounds } = settings.requestQueueController;
    if (watermarkPerBackend === null) {
      const limit = pool.readyBackends > 0 ? pool.limit : 0;
      return { lower: limit, upper: limit };
    }
    const deviation = percentageDeviationForBounds ?? 0.1;
    const watermark = watermarkPerBackend * pool.readyBackends;
    return { lower: watermark * (1 - deviation), upper: watermark * (1 + deviation) };
  }

  /** Keeps the state of the Schmitt trigger; to be called after every change of stock or bounds. */
  note(): void {
    const stock = this.#scene.inFlight.length;
    const { lower, upper } = this.bounds;
    if (stock === 0 || stock < lower) this.#isDraining = true;
    else if (stock >= upper) this.#isDraining = false;
  }

  isOpen(band: Band, onArrival: boolean): boolean {
    const { settings, inFlight } = this.#scene;
    const { lower, upper } = this.bounds;
    if (inFlight.length === 0) return upper > 0;
    const isSchmitt = settings.requestQueueController.hysteresis === 'schmitt';
    const bound = onArrival || isSchmitt ? upper : lower;
    if (!onArrival && isSchmitt && !this.#isDraining) return false;
    return inFlight.length < settings.bands.ceilings[band] * bound;
  }

  isBelowCap(): boolean {
    const { inFlight, pool } = this.#scene;
    return inFlight.filter((one) => one.stockBand === BAND.sheddable).length < pool.sheddableCap;
  }

  queuedIn(band: Band): QueuedRequest[] {
    return this.#scene.queued.filter((one) => one.band === band);
  }

  onDispatched(request: QueuedRequest, by: DispatchedBy): void {
    this.note();
    this.#noteFreed(request);
    must(this.#scene.nowMs < (request.expiresMs ?? Infinity), 'dispatched in time');
    must(this.#scene.nowMs < (request.deadlineMs ?? Infinity), 'dispatched before its deadline');
    must(!request.isCancelled, 'not cancelled');
    if (by === 'bypass') this.#onBypass(request);
    else this.#onDequeued(request, by);
  }

  onDropped(request: QueuedRequest, code: DropCode): void {
    this.#noteFreed(request);
    const { nowMs, newcomer, settings } = this.#scene;
    const { flowCapacity, totalCapacity } = settings.fairRequestQueue;
    if (code === 'evicted') {
      must(newcomer !== null && newcomer.band < request.band, 'evicted for a higher band');
      const others = this.queuedIn(BAND.sheddable).filter((one) => one !== request);
      must(request.band !== BAND.standard || others.length === 0, 'sheddable goes first');
    }
    if (code === 'queue_ttl_expired') {
      const expiresMs = request.expiresMs ?? Infinity;
      must(nowMs >= expiresMs && nowMs <= expiresMs + 100, 'expired on time');
    }
    if (request === newcomer && request.band === BAND.critical) {
      const flows = new Set(this.queuedIn(BAND.critical).map(({ tenant }) => tenant));
      const own = this.queuedIn(BAND.critical).filter((one) => one.tenant === request.tenant);
      const guaranteed = own.length > 0 || (flows.size + 1) * flowCapacity <= totalCapacity;
      if (own.length < flowCapacity && guaranteed) {
        must(!['too_many_flows', 'insufficient_flow_capacity'].includes(code), 'guaranteed');
      }
    }
  }

  /** The rules that hold between two steps. */
  check(): void {
    this.note();
    const { controller, inFlight, queued, accepted, outcomes, settings } = this.#scene;
    const stats = controller.stats();
    must(accepted === outcomes.length + queued.length, 'each request settles once');
    must(stats.stock === inFlight.length, 'stock is what is in flight');
    must(
      close(
        stats.stockCost,
        sumOf(inFlight, ({ cost }) => cost),
      ),
      'cost of the stock',
    );
    must(
      close(
        stats.queuedCost,
        sumOf(queued, ({ cost }) => cost),
      ),
      'cost of the queue',
    );
    must(stats.queuedBytes === sumOf(queued, ({ bytes }) => bytes), 'bytes of the queue');
    this.#checkCapacity();
    this.#checkAge();
    must(
      outcomes.every(({ request }) => request.dueTick === -1),
      'no timer outlives the wait',
    );
    for (const band of [BAND.critical, BAND.standard, BAND.sheddable] as const) {
      must(stats.queued[band] === this.queuedIn(band).length, 'length of the queue');
      const mayGo = this.isOpen(band, false) && (band !== BAND.sheddable || this.isBelowCap());
      must(!mayGo || this.queuedIn(band).length === 0, `nothing waits at an open gate (${band})`);
    }
    if (settings.fairRequestQueue.enqueue === 'critical') {
      must(
        queued.every(({ band }) => band === BAND.critical),
        'only critical requests wait',
      );
    }
  }

  /** Lengths between steps would not show it: in one step a request may be promoted and leave. */
  #noteFreed(request: QueuedRequest): void {
    const { nowMs, queued } = this.#scene;
    if (request.band === BAND.critical && queued.includes(request)) this.#freedAtMs = nowMs;
  }

  #onBypass(request: QueuedRequest): void {
    must(this.isOpen(request.band, true), 'bypass at an open gate');
    must(request.band !== BAND.sheddable || this.isBelowCap(), 'bypass below the cap');
    const ahead = this.#scene.queued.filter(({ band }) => band <= request.band);
    must(ahead.length === 0, 'bypass overtakes nothing');
    must(this.#scene.inFlight.length < Math.ceil(this.bounds.upper), 'stock stays below the bound');
  }

  #onDequeued(request: QueuedRequest, by: DispatchedBy): void {
    const { settings, inFlight } = this.#scene;
    const ceilingOf = { floor: BAND.critical, promoted: BAND.standard };
    const band = by === 'queue' || by === 'bypass' ? request.band : ceilingOf[by];
    must(this.isOpen(band, false), `dequeue at an open gate (${by})`);
    const needsCap = request.band === BAND.sheddable && by !== 'promoted';
    must(!needsCap || this.isBelowCap(), 'dequeue below the cap');
    must(inFlight.length < Math.ceil(this.bounds.upper), 'stock stays below the bound');
    this.#checkFifo(request);
    this.#checkBand(request, by);
    if (by === 'promoted') {
      const urgent = this.#scene.share((one) => isUrgent(one.request));
      must(urgent < settings.bands.promotedShare, 'urgent lines stay within their share');
    }
  }

  #checkBand(request: QueuedRequest, by: DispatchedBy): void {
    const { settings } = this.#scene;
    const { between, floor } = settings.bands;
    const higher = this.#scene.queued.filter(({ band }) => band < request.band);
    if (by === 'queue' && between !== 'weighted') must(higher.length === 0, 'higher bands first');
    if (by !== 'floor') return;
    must(between === 'strict_floor', 'a floor only with strict_floor');
    const share = this.#scene.fadingShare((one) => stockBandOf(one) === request.band);
    must(share < floor * FADES_IN_STEPS, 'the floor is for starved bands');
  }

  /** A standard request that is old enough has moved, unless the critical flow has no place for it. */
  #checkAge(): void {
    const { nowMs, settings } = this.#scene;
    const { promoteAfterMs } = settings.bands;
    if (promoteAfterMs === null) return;
    const { flowCapacity, totalCapacity } = settings.fairRequestQueue;
    const critical = this.queuedIn(BAND.critical);
    const flows = new Set(critical.map(({ tenant }) => tenant));
    for (const { tenant, queuedAtMs } of this.queuedIn(BAND.standard)) {
      if (nowMs < queuedAtMs + promoteAfterMs + 200) continue;
      const own = critical.filter((one) => one.tenant === tenant).length;
      const hasPlace =
        own > 0 ? own < flowCapacity : (flows.size + 1) * flowCapacity <= totalCapacity;
      // A place may have become free since the last tick.
      must(!hasPlace || this.#freedAtMs > nowMs - 100, 'aged requests move up');
    }
  }

  #checkFifo(request: QueuedRequest): void {
    const { bandOnArrival, settings } = this.#scene;
    // With finish tags a promoted request enters its new flow at the end: it is compared with other promoted ones only.
    const isByAge = settings.fairRequestQueue.scheduler === 'start';
    const ahead = this.queuedIn(request.band).filter(
      (one) =>
        one.tenant === request.tenant &&
        (isByAge || bandOnArrival.get(one) === bandOnArrival.get(request)) &&
        (one.priority < request.priority ||
          (one.priority === request.priority && one.queuedAtMs < request.queuedAtMs)),
    );
    must(ahead.length === 0, 'first in, first out within a flow');
  }

  #checkCapacity(): void {
    const { settings, queued } = this.#scene;
    const { totalCapacity, flowCapacity, sheddableCapacity } = settings.fairRequestQueue;
    const { queueBytes, sheddableBytes } = settings.fairRequestQueue;
    must(queued.length <= totalCapacity, 'total capacity');
    must(sumOf(queued, ({ bytes }) => bytes) <= queueBytes, 'bytes');
    const sheddable = this.queuedIn(BAND.sheddable);
    const flows = new Set(sheddable.map(({ tenant }) => tenant)).size;
    must(sheddable.length <= sheddableCapacity + flows, 'capacity for sheddable');
    must(sumOf(sheddable, ({ bytes }) => bytes) <= sheddableBytes, 'bytes for sheddable');
    for (const band of [BAND.critical, BAND.standard] as const) {
      const counts = new Map<string, number>();
      for (const { tenant } of this.queuedIn(band)) {
        counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
      }
      must(Math.max(0, ...counts.values()) <= flowCapacity, 'flow capacity');
    }
  }
}

function isUrgent({ band, priority }: QueuedRequest): boolean {
  return band === BAND.sheddable && priority === 2;
}

function sumOf<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((sum, value) => sum + of(value), 0);
}

function close(a: number, b: number): boolean {
  return Math.abs(a - b) < 1e-6;
}

/** Cheaper than `expect`, which a run would call a million times. */
function must(holds: boolean, rule: string): void {
  if (!holds) throw new Error(`broken: ${rule}`);
}
