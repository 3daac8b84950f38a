import { forEachConcurrently } from '../../core/async/for-each-concurrently';

/** A file whose written bytes survive power loss after `sync`, which handles its own errors. */
export interface Syncable {
  sync(): Promise<void>;
}

export interface SyncRoundsOptions {
  /** Shortest time from the end of a round to the next one. */
  readonly intervalMs: number;
  /** Syncs that run at the same time. */
  readonly parallel: number;
}

/**
 * Syncs the segments of all writers of a process in common rounds, a few at a time, with one timer for all
 * (docs/design/journal.md#writing-and-durability). Rounds never overlap, and none runs if nothing was
 * written.
 */
export class SyncRounds {
  readonly #options: SyncRoundsOptions;
  #marked = new Set<Syncable>();
  #timer: NodeJS.Timeout | null = null;
  #round: Promise<void> | null = null;

  constructor(options: SyncRoundsOptions) {
    this.#options = options;
  }

  /** Asks for a sync of `item` in the next round. */
  mark(item: Syncable): void {
    this.#marked.add(item);
    if (this.#timer === null && this.#round === null) this.#arm();
  }

  /** Waits for the running round, then syncs all marked items at once. */
  async runNow(): Promise<void> {
    while (this.#round !== null) await this.#round;
    await this.#run();
  }

  #arm(): void {
    this.#timer = setTimeout(() => void this.#run(), this.#options.intervalMs);
    // Written bytes survive the end of this process, so no exit has to wait for the timer.
    this.#timer.unref();
  }

  #run(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    // The first sync must start after `#round` is set: an item marked during it must not arm a timer.
    const round = Promise.resolve().then(() => this.#syncMarked());
    this.#round = round.finally(() => {
      this.#round = null;
      if (this.#marked.size > 0) this.#arm();
    });
    return this.#round;
  }

  async #syncMarked(): Promise<void> {
    const items = [...this.#marked];
    this.#marked = new Set();
    await forEachConcurrently(items, this.#options.parallel, (item) => item.sync());
  }
}
