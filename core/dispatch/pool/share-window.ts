import type { Band } from '../queue/band';

const SLOT_MS = 100;
const SLOTS = 100;
/** Index of urgent lines, whose cost also counts in their band. */
const URGENT = 3;
const KINDS = 4;

/** The cost dispatched in the last 10 s, in total and by band: what shares of bands are shares of. */
export class ShareWindow {
  readonly #slots = new Float64Array(SLOTS * KINDS);
  readonly #sums = new Float64Array(KINDS);
  #slot = 0;

  /** Cost of all bands. */
  get total(): number {
    return this.#sum(0) + this.#sum(1) + this.#sum(2);
  }

  /** Dispatched cost per second. */
  get ratePerSec(): number {
    return this.total / ((SLOTS * SLOT_MS) / 1_000);
  }

  /** The part of the cost that a band got; 0 if nothing was dispatched. */
  shareOf(band: Band): number {
    return this.#share(band);
  }

  /** The part of the cost that urgent lines got, by their turn or out of it. */
  get urgentShare(): number {
    return this.#share(URGENT);
  }

  add(band: Band, cost: number, isUrgent: boolean): void {
    this.#add(band, cost);
    if (isUrgent) this.#add(URGENT, cost);
  }

  /** Forgets what was dispatched more than 10 s before `nowMs`. Call it before the other methods. */
  advance(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS);
    if (slot <= this.#slot) return;
    const passed = Math.min(SLOTS, slot - this.#slot);
    for (let i = slot - passed + 1; i <= slot; i++) this.#slots.fill(0, ...span(i));
    this.#slot = slot;
    // Summed anew instead of subtracted: differences of fractions would not return to 0.
    this.#sums.fill(0);
    for (let i = 0; i < this.#slots.length; i++) {
      this.#sums[i % KINDS] = this.#sum(i % KINDS) + (this.#slots[i] ?? 0);
    }
  }

  #add(kind: number, cost: number): void {
    const at = (this.#slot % SLOTS) * KINDS + kind;
    this.#slots[at] = (this.#slots[at] ?? 0) + cost;
    this.#sums[kind] = this.#sum(kind) + cost;
  }

  #share(kind: number): number {
    const { total } = this;
    return total === 0 ? 0 : this.#sum(kind) / total;
  }

  #sum(kind: number): number {
    return this.#sums[kind] ?? 0;
  }
}

function span(slot: number): [from: number, to: number] {
  const from = (slot % SLOTS) * KINDS;
  return [from, from + KINDS];
}
