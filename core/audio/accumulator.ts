/** Cancels a timer. */
type CancelTimer = () => void;

/** What an {@link Accumulator} is made of. */
export interface AccumulatorOptions<T> {
  readonly flushIntervalMs: number;
  readonly maxBatchSize: number;
  /** `single`: an item of another group flushes what is collected. */
  readonly mode: 'per_model' | 'single';
  setTimer(run: () => void, ms: number): CancelTimer;
  /** Takes the items of one group, in order of arrival. */
  flush(items: readonly T[]): void;
}

interface Bucket<T> {
  readonly items: Set<T>;
  readonly cancelTimer: CancelTimer;
}

/**
 * Collects requests for a moment, so that those that come together can go together
 * (docs/design/audio-scheduling.md#accumulator). A bucket is flushed when it is full, a time after its first item, or,
 * in mode `single`, when an item of another group arrives.
 */
export class Accumulator<T> {
  readonly #options: AccumulatorOptions<T>;
  readonly #buckets = new Map<string, Bucket<T>>();

  constructor(options: AccumulatorOptions<T>) {
    this.#options = options;
  }

  /** Items that are collected. */
  get size(): number {
    let size = 0;
    for (const { items } of this.#buckets.values()) size += items.size;
    return size;
  }

  add(item: T, group: string): void {
    const { maxBatchSize, mode } = this.#options;
    if (mode === 'single' && !this.#buckets.has(group)) this.flushAll();
    const bucket = this.#buckets.get(group) ?? this.#open(group);
    bucket.items.add(item);
    if (bucket.items.size >= maxBatchSize) this.#flush(group);
  }

  /** Takes an item out; returns false if it is not collected. */
  remove(item: T): boolean {
    for (const [group, { items, cancelTimer }] of this.#buckets) {
      if (!items.delete(item)) continue;
      if (items.size === 0) {
        cancelTimer();
        this.#buckets.delete(group);
      }
      return true;
    }
    return false;
  }

  flushAll(): void {
    for (const group of [...this.#buckets.keys()]) this.#flush(group);
  }

  #open(group: string): Bucket<T> {
    const { flushIntervalMs, setTimer } = this.#options;
    const bucket = {
      items: new Set<T>(),
      cancelTimer: setTimer(() => this.#flush(group), flushIntervalMs),
    };
    this.#buckets.set(group, bucket);
    return bucket;
  }

  #flush(group: string): void {
    const bucket = this.#buckets.get(group);
    if (bucket === undefined) return;
    bucket.cancelTimer();
    this.#buckets.delete(group);
    this.#options.flush([...bucket.items]);
  }
}
