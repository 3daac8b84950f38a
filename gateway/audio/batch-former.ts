import type { Band } from '../../core/dispatch/queue/band';
import type { PooledJob } from './pooled-job';
import type { Slot } from './slot-table';

/** A batch that others may still join. */
interface Forming {
  readonly slot: Slot;
  readonly entries: PooledJob[];
  readonly most: number;
}

/** What a {@link BatchFormer} does with a batch. */
export interface BatchFormerPorts {
  /** Calls back when the dispatches of this turn are over. */
  afterDispatches(run: () => void): void;
  /** No other request may join. */
  start(slot: Slot, entries: readonly PooledJob[]): void;
}

/**
 * Forms batches while the queue dispatches (docs/design/audio-scheduling.md#batches). The first request of a group takes
 * a slot. Until the dispatches of this turn are over, others of its group and band may join it in the order of the
 * queue, without a slot of their own.
 */
export class BatchFormer {
  readonly #ports: BatchFormerPorts;
  readonly #forming = new Map<string, Forming>();

  constructor(ports: BatchFormerPorts) {
    this.#ports = ports;
  }

  /** Whether a batch is forming that has room for a request. */
  hasRoomFor(entry: PooledJob, band: Band): boolean {
    return this.#forming.has(keyOf(entry, band));
  }

  /** Puts a request into the batch that has room for it. */
  join(entry: PooledJob, band: Band): void {
    const key = keyOf(entry, band);
    const batch = this.#forming.get(key);
    if (batch === undefined) throw new RangeError(`no batch is forming for ${key}`);
    batch.entries.push(entry);
    if (batch.entries.length >= batch.most) this.#start(key, batch);
  }

  /** Begins a batch of at most `most` requests, at least 2. */
  begin(entry: PooledJob, band: Band, { slot, most }: { slot: Slot; most: number }): void {
    const key = keyOf(entry, band);
    const batch: Forming = { slot, entries: [entry], most };
    this.#forming.set(key, batch);
    this.#ports.afterDispatches(() => {
      if (this.#forming.get(key) === batch) this.#start(key, batch);
    });
  }

  #start(key: string, { slot, entries }: Forming): void {
    this.#forming.delete(key);
    this.#ports.start(slot, entries);
  }
}

function keyOf({ group }: PooledJob, band: Band): string {
  return `${band} ${group}`;
}
