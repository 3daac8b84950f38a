import { BAND, type Band, type PerBand } from '../queue/band';
import type { RequestQueueControllerSettings } from './pool-settings';
import type { Stock } from './stock';

/** What the driver of a pool knows about its backends. */
export interface PoolState {
  readonly readyBackends: number;
  /** How many requests the ready backends may have in flight; static bounds ignore it. */
  readonly limit: number;
  /** The same for sheddable requests, which count what is in flight of all bands; `limit` by default. */
  readonly sheddableLimit?: number;
  /** How many they can use, as learnt: more brings nothing. It only shows how full the pool is; `limit` by default. */
  readonly learnt?: number;
  /** Sheddable requests that may be in flight besides the ceiling of their band. */
  readonly sheddableCap: number;
}

/** Bounds of the stock, in requests. */
export interface Bounds {
  readonly lower: number;
  readonly watermark: number;
  readonly upper: number;
}

/** The watermark of fixed bounds that name none. */
export const WATERMARK = 2;
const DEVIATION = 0.1;

/** Decides whether the stock leaves room for another request (docs/design/flow-control.md#gate). */
export class Gate {
  readonly #settings: RequestQueueControllerSettings;
  readonly #perBackend: Bounds | null;
  readonly #ceilings: PerBand<number>;
  readonly #stock: Stock;
  #pool: PoolState = { readyBackends: 0, limit: 0, sheddableCap: Infinity };
  #bounds: Bounds = { lower: 0, watermark: 0, upper: 0 };
  /** With `schmitt`: whether the stock fell below the lower bound after it last reached the upper one. */
  #isDraining = true;

  constructor(settings: RequestQueueControllerSettings, ceilings: PerBand<number>, stock: Stock) {
    this.#settings = settings;
    this.#perBackend = boundsPerBackend(settings);
    this.#ceilings = ceilings;
    this.#stock = stock;
  }

  get bounds(): Bounds {
    return this.#bounds;
  }

  /** Requests in flight with which the pool is full. Users may exceed a learnt limit, which is an estimate. */
  get fullAt(): number {
    return this.#perBackend === null ? this.#bounds.watermark : this.#bounds.upper;
  }

  get pool(): PoolState {
    return this.#pool;
  }

  set pool(pool: PoolState) {
    this.#pool = pool;
    const { readyBackends, limit, learnt = limit } = pool;
    const per = this.#perBackend ?? { lower: limit, watermark: learnt, upper: limit };
    const times = this.#perBackend === null ? Number(readyBackends > 0) : readyBackends;
    this.#bounds = {
      lower: per.lower * times,
      watermark: per.watermark * times,
      upper: per.upper * times,
    };
    this.onStockChanged();
  }

  onStockChanged(): void {
    const { requests } = this.#stock;
    if (requests === 0 || requests < this.#bounds.lower) this.#isDraining = true;
    else if (requests >= this.#bounds.upper) this.#isDraining = false;
  }

  /** Whether a request of `band` may be dispatched on arrival. */
  isOpenOnArrival(band: Band): boolean {
    return this.#hasRoom(this.#bounds.upper, band);
  }

  /** Whether a queued request may be dispatched within the ceiling of `band`. */
  isOpenForQueue(band: Band): boolean {
    const { lower, upper } = this.#bounds;
    if (this.#settings.hysteresis === 'seed') return this.#hasRoom(lower, band);
    return this.#isDraining && this.#hasRoom(upper, band);
  }

  /** Whether the cap of the sheddable band leaves room; always true for the others. */
  isBelowCap(band: Band): boolean {
    return band !== BAND.sheddable || this.#stock.inBand(band) < this.#pool.sheddableCap;
  }

  #hasRoom(bound: number, band: Band): boolean {
    const { requests, cost } = this.#stock;
    // A bound below 1 must not stop an idle pool for good.
    if (requests === 0) return this.#bounds.upper > 0;
    const ceiling = this.#ceilings[band];
    if (requests >= Math.min(ceiling * bound, this.#mostFor(band))) return false;
    const { maxCostPerBackend } = this.#settings;
    return (
      maxCostPerBackend === null || cost < ceiling * maxCostPerBackend * this.#pool.readyBackends
    );
  }

  #mostFor(band: Band): number {
    if (band !== BAND.sheddable || this.#perBackend !== null) return Infinity;
    return this.#pool.sheddableLimit ?? Infinity;
  }
}

/** Static bounds; null in adaptive mode. */
function boundsPerBackend(settings: RequestQueueControllerSettings): Bounds | null {
  const { watermarkPerBackend, percentageDeviationForBounds } = settings;
  const { lowerBoundPerBackend, upperBoundPerBackend } = settings;
  const keys = [watermarkPerBackend, percentageDeviationForBounds];
  if ([...keys, lowerBoundPerBackend, upperBoundPerBackend].every((key) => key === null))
    return null;
  const watermark = watermarkPerBackend ?? WATERMARK;
  const deviation = percentageDeviationForBounds ?? DEVIATION;
  return {
    lower: lowerBoundPerBackend ?? watermark * (1 - deviation),
    watermark,
    upper: upperBoundPerBackend ?? watermark * (1 + deviation),
  };
}
