/** A place for a page on the disk. */
export interface Slot {
  readonly number: number;
  /** False until a write has succeeded: the disk may have no space for it. */
  isProven: boolean;
}

/** The slots of a disk that hold no page. */
export class Slots {
  readonly #count: number;
  readonly #free: Slot[] = [];
  /** Slots from this number on were never used. */
  #unused = 0;

  constructor(count: number) {
    this.#count = count;
  }

  /** A slot, or null if there is none. `provenOnly` while the disk is full. */
  take(provenOnly: boolean): Slot | null {
    const free = provenOnly
      ? this.#free.findLastIndex(({ isProven }) => isProven)
      : this.#free.length - 1;
    if (free >= 0) return this.#free.splice(free, 1)[0] ?? null;
    if (this.#unused >= this.#count || provenOnly) return null;
    return { number: this.#unused++, isProven: false };
  }

  giveBack(slot: Slot): void {
    this.#free.push(slot);
  }
}

/** Sorts slots by number and groups those behind each other, which one system call can write. */
export function inRuns(slots: readonly Slot[]): Slot[][] {
  const runs: Slot[][] = [];
  let last: Slot | undefined;
  for (const slot of [...slots].sort((a, b) => a.number - b.number)) {
    if (last !== undefined && slot.number === last.number + 1) runs.at(-1)?.push(slot);
    else runs.push([slot]);
    last = slot;
  }
  return runs;
}
