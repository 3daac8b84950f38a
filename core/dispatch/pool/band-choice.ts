import { BAND, BANDS, type Band, type PerBand } from '../queue/band';
import type { FairRequestQueue } from '../queue/fair-request-queue';
import type { DispatchedBy } from '../queue/queued-request';
import type { Gate } from './gate';
import type { BandSettings } from './pool-settings';
import type { FloorShares } from './floor-shares';
import type { ShareWindow } from './share-window';

/** The queue whose head goes next, and why; `promoted` stands for its urgent head. */
export interface Choice {
  readonly band: Band;
  readonly by: DispatchedBy;
}

/** What the choice depends on. */
export interface ChoiceInput {
  readonly settings: BandSettings;
  readonly queues: PerBand<FairRequestQueue>;
  readonly gate: Gate;
  readonly window: ShareWindow;
  readonly floors: FloorShares;
}

const BY_QUEUE = BANDS.map((band): Choice => ({ band, by: 'queue' }));
const BY_FLOOR = BANDS.map((band): Choice => ({ band, by: 'floor' }));
const URGENT: Choice = { band: BAND.sheddable, by: 'promoted' };

/** Decides from which band the next request is dispatched (docs/design/flow-control.md#bands). */
export class BandChoice {
  readonly #input: ChoiceInput;
  /** With `weighted`: start tags over the bands. */
  readonly #finish: [number, number, number] = [0, 0, 0];
  #virtualTime = 0;
  /** Bands that are passed over in this run of the pump. */
  readonly #isSkipped: [boolean, boolean, boolean] = [false, false, false];

  constructor(input: ChoiceInput) {
    this.#input = input;
  }

  /** The next choice; null if no band is open, or nothing that is queued may go. */
  next(): Choice | null {
    const { between } = this.#input.settings;
    if (between === 'weighted') return this.#leastServed();
    return (between === 'strict_floor' ? this.#starved() : null) ?? this.#highest();
  }

  /** Charges a dispatch to its band, also a bypass. */
  onDispatched(band: Band, cost: number): void {
    const start = Math.max(this.#virtualTime, this.#finish[band]);
    this.#virtualTime = start;
    this.#finish[band] = start + cost / this.#input.settings.weights[band];
  }

  /** Passes over a band until `endSkips`. */
  skip(band: Band): void {
    this.#isSkipped[band] = true;
  }

  endSkips(): void {
    for (const band of BANDS) this.#isSkipped[band] = false;
  }

  /**
   * A lower band that waits and got less than the floor. The ceiling of the highest band applies: with its
   * own, a pool that higher bands keep full would never reach the floor.
   */
  #starved(): Choice | null {
    const { settings, gate, queues, floors } = this.#input;
    const { floor } = settings;
    let starved: Choice | null = null;
    for (const band of [BAND.sheddable, BAND.standard] as const) {
      // Asked also while the gate is closed: it notes since when the band waits.
      const isStarved = floors.isStarved(band, { isWaiting: queues[band].length > 0, floor });
      if (isStarved && this.#hasHead(band)) starved = BY_FLOOR[band] ?? null;
    }
    return gate.isOpenForQueue(BAND.critical) ? starved : null;
  }

  #highest(): Choice | null {
    for (const band of BANDS) {
      // Ceilings never rise towards lower bands, so the first closed band ends the search.
      if (!this.#input.gate.isOpenForQueue(band)) return null;
      const choice = this.#candidate(band);
      if (choice !== null) return choice;
    }
    return null;
  }

  #leastServed(): Choice | null {
    let least: Choice | null = null;
    let leastStart = Infinity;
    for (const band of BANDS) {
      if (!this.#input.gate.isOpenForQueue(band)) break;
      const choice = this.#candidate(band);
      const start = Math.max(this.#virtualTime, this.#finish[band]);
      if (choice === null || start >= leastStart) continue;
      least = choice;
      leastStart = start;
    }
    return least;
  }

  #candidate(band: Band): Choice | null {
    if (band === BAND.standard && this.#hasUrgent()) return URGENT;
    return this.#hasHead(band) ? (BY_QUEUE[band] ?? null) : null;
  }

  #hasHead(band: Band): boolean {
    const { queues, gate } = this.#input;
    return queues[band].head !== null && gate.isBelowCap(band) && !this.#isSkipped[band];
  }

  /** Whether an urgent line may go out of turn. It counts as standard, within its share of the cost. */
  #hasUrgent(): boolean {
    const { queues, window, settings } = this.#input;
    return (
      queues[BAND.sheddable].urgentHead !== null &&
      window.urgentShare < settings.promotedShare &&
      !this.#isSkipped[BAND.sheddable]
    );
  }
}
