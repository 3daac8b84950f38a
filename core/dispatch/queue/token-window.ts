const SLOT_MS = 5_000;
const SLOTS = 12;

/** Tokens of the last minute, in slots of 5 s: a sum covers the last 55 to 60 s. */
export class TokenWindow {
  readonly #slots = new Array<number>(SLOTS).fill(0);
  #slot = 0;

  /** Adds tokens at a time of a monotonic clock, ms. */
  add(tokens: number, nowMs: number): void {
    this.#advance(nowMs);
    const at = this.#slot % SLOTS;
    this.#slots[at] = (this.#slots[at] ?? 0) + Math.round(tokens);
  }

  sum(nowMs: number): number {
    this.#advance(nowMs);
    return this.#slots.reduce((total, tokens) => total + tokens, 0);
  }

  #advance(nowMs: number): void {
    const slot = Math.floor(nowMs / SLOT_MS);
    if (slot - this.#slot >= SLOTS) this.#slots.fill(0);
    else for (let old = this.#slot + 1; old <= slot; old++) this.#slots[old % SLOTS] = 0;
    this.#slot = Math.max(this.#slot, slot);
  }
}
