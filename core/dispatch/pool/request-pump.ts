import { PRIORITY } from '../../chunks/priority';
import { BAND, BANDS, type Band, type PerBand } from '../queue/band';
import type { FairRequestQueue } from '../queue/fair-request-queue';
import type { DispatchedBy, QueuedRequest } from '../queue/queued-request';
import { BandChoice } from './band-choice';
import { Gate, type PoolState } from './gate';
import type { OwnerCalls } from './owner-calls';
import type { PoolSettings } from './pool-settings';
import { Reclaim } from './reclaim';
import { FloorShares } from './floor-shares';
import { ShareWindow } from './share-window';
import { Stock } from './stock';
import type { WaitingRoom } from './waiting-room';

/** What a pump is made of. */
export interface RequestPumpOptions {
  readonly settings: PoolSettings;
  readonly queues: PerBand<FairRequestQueue>;
  readonly room: WaitingRoom;
  readonly calls: OwnerCalls;
  readonly mayDispatch: ((request: QueuedRequest) => boolean) | null;
  readonly onError: (error: unknown) => void;
}

const NONE = (): Record<DispatchedBy, number> => ({ bypass: 0, queue: 0, floor: 0, promoted: 0 });

/** The requests in flight: which may go now, and what changes when they go and end. */
export class RequestPump {
  readonly stock = new Stock();
  readonly window = new ShareWindow();
  readonly #floors = new FloorShares();
  readonly gate: Gate;
  readonly #options: RequestPumpOptions;
  readonly #choice: BandChoice;
  readonly #reclaim: Reclaim | null;
  readonly #dispatched: PerBand<Record<DispatchedBy, number>> = [NONE(), NONE(), NONE()];
  #attempts = 0;
  #successes = 0;

  constructor(options: RequestPumpOptions) {
    const { settings, queues } = options;
    this.#options = options;
    this.gate = new Gate(settings.requestQueueController, settings.bands.ceilings, this.stock);
    this.#choice = new BandChoice({
      ...{ settings: settings.bands, queues, gate: this.gate, window: this.window },
      floors: this.#floors,
    });
    this.#reclaim = settings.requestQueueController.reclaim ? new Reclaim() : null;
  }

  /** How often it looked for a queued request to dispatch, and how often it found one. */
  get counts(): { readonly attempts: number; readonly successes: number } {
    return { attempts: this.#attempts, successes: this.#successes };
  }

  /** Requests of a band that were dispatched so far, by what made it their turn. */
  dispatchedOf(band: Band): Readonly<Record<DispatchedBy, number>> {
    return this.#dispatched[band];
  }

  /** Time has passed. Call it before dispatches. */
  advance(nowMs: number): void {
    this.window.advance(nowMs);
    this.#floors.advance(nowMs);
  }

  set pool(pool: PoolState) {
    this.gate.pool = pool;
    this.#unparkAll();
  }

  /** Whether a new request may be dispatched at once. It must not overtake its own or a higher band. */
  mayBypass(request: QueuedRequest): boolean {
    const { band } = request;
    const { queues } = this.#options;
    if (!this.gate.isOpenOnArrival(band) || !this.gate.isBelowCap(band)) return false;
    for (let above = 0; above <= band; above++) if ((queues[above]?.length ?? 0) > 0) return false;
    return this.#isAllowed(request);
  }

  bypass(request: QueuedRequest): void {
    this.#options.queues[request.band].bypass(request);
    this.#send(request, request.band, 'bypass');
  }

  /** Handles the request whose turn it is; returns false if none may go. */
  dispatchNext(nowMs: number): boolean {
    const { queues, room } = this.#options;
    this.#attempts++;
    const choice = this.#choice.next();
    const queue = queues[choice?.band ?? BAND.critical];
    const request = choice?.by === 'promoted' ? queue.urgentHead : queue.head;
    if (choice === null || request === null) {
      this.#choice.endSkips();
      return false;
    }
    const code = room.endOfWait(request, nowMs);
    if (code !== null) return room.drop(request, code);
    if (!this.#mayGo(request)) return true;
    if (choice.by === 'promoted') queue.popUrgent();
    else queue.pop();
    room.leave(request);
    this.#successes++;
    this.#send(request, choice.by === 'promoted' ? BAND.standard : request.band, choice.by);
    return true;
  }

  /** A dispatched request has ended and really cost `cost`. */
  end(request: QueuedRequest, cost: number): void {
    const { queues, mayDispatch } = this.#options;
    const { flow, band } = request;
    request.state = 'ended';
    this.stock.remove(request.stockBand, request.cost);
    this.gate.onStockChanged();
    queues[band].end(request, cost);
    this.#reclaim?.onEnded(request);
    if (mayDispatch !== null) this.#unparkAll();
    else if (flow !== null) queues[band].unpark(flow);
  }

  /** Asks owners of sheddable requests to abort them, if higher bands have been shut out for too long. */
  abortForHigherBands(nowMs: number): void {
    if (this.#reclaim === null) return;
    const { queues, calls } = this.#options;
    const isShutOut = [BAND.critical, BAND.standard].some(
      (band) => queues[band].head !== null && !this.gate.isOpenForQueue(band),
    );
    const hasBackends = this.gate.pool.readyBackends > 0;
    const chosen = this.#reclaim.decide(isShutOut && hasBackends, nowMs);
    for (const request of chosen) calls.reclaimed(request);
  }

  #send(request: QueuedRequest, stockBand: Band, by: DispatchedBy): void {
    const isUrgent = request.band === BAND.sheddable && request.priority === PRIORITY.urgent;
    request.stockBand = stockBand;
    this.stock.add(stockBand, request.cost);
    this.gate.onStockChanged();
    this.window.add(stockBand, request.cost, isUrgent);
    this.#floors.add(stockBand, request.cost);
    this.#dispatched[request.band][by]++;
    this.#choice.onDispatched(stockBand, request.cost);
    if (stockBand === BAND.sheddable) this.#reclaim?.onDispatched(request);
    if (!this.#options.calls.dispatched(request, by)) this.#endUnsent(request);
  }

  /** The owner threw, so it will not report an end. */
  #endUnsent(request: QueuedRequest): void {
    if (request.state === 'dispatched') this.end(request, request.cost);
  }

  /** Parks the flow of a request that may not go, and skips its band if that cannot be found out. */
  #mayGo(request: QueuedRequest): boolean {
    const { queues, onError } = this.#options;
    const { flow, band } = request;
    try {
      if (this.#isAllowed(request)) return true;
      if (flow !== null) queues[band].park(flow);
    } catch (error) {
      onError(error);
      this.#choice.skip(band);
    }
    return false;
  }

  #isAllowed(request: QueuedRequest): boolean {
    const { settings, mayDispatch } = this.#options;
    const { maxInFlightPerFlow } = settings.requestQueueController;
    const most = (maxInFlightPerFlow ?? Infinity) * this.gate.pool.readyBackends;
    return (request.flow?.inFlight ?? 0) < most && (mayDispatch === null || mayDispatch(request));
  }

  #unparkAll(): void {
    for (const band of BANDS) this.#options.queues[band].unparkAll();
  }
}
