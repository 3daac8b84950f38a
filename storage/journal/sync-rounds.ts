/** Something written that a sync makes survive power loss. Errors are its own business. */
export interface Syncable {
  sync(): Promise<void>;
}

export interface SyncRoundsOptions {
  /** Least time between the beginnings of two rounds. */
  readonly intervalMs: number;
  /** Syncs that run at the same time. */
  readonly parallel: number;
}

/**
 * One clock of syncs for all writers of a process (execution §2): what was marked is synced in the
 * next round, a few at a time. Rounds never overlap and none runs while nothing is marked.
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

  /** Syncs all that is marked now, without waiting for the clock. */
  async runNow(): Promise<void> {
    while (this.#round !== null) await this.#round;
    await this.#run();
  }

  #arm(): void {
    this.#timer = setTimeout(() => void this.#run(), this.#options.intervalMs);
    // What was written survives this process; only its owner's `close` waits for the disk.
    this.#timer.unref();
  }

  #run(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    // Begins after `#round` is set: what the first sync marks must not arm a second clock.
    const round = Promise.resolve().then(() => this.#syncMarked());
    this.#round = round.finally(() => {
      this.#round = null;
      if (this.#marked.size > 0) this.#arm();
    });
    return this.#round;
  }

  async #syncMarked(): Promise<void> {
    const items = [...this.#marked].values();
    this.#marked = new Set();
    const lane = async () => {
      for (const item of items) await item.sync();
    };
    await Promise.all(Array.from({ length: this.#options.parallel }, lane));
  }
}
