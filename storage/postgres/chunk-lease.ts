import type { StopCause } from '../../core/batch/status';
import { isTerminal } from '../../core/batch/status';
import type { ChunkKey, ProgressRow, ProgressVerdict } from './progress-sql';

/** The lease of one chunk attempt on its range (docs/design/execution.md#progress-and-fencing). */
export interface ChunkLease {
  /** An attempt with a higher epoch holds the range: send nothing more, write no seal. */
  readonly lost: boolean;
  readonly stopCause: StopCause | null;
  /** The batch has ended: its chunks send nothing. */
  readonly terminal: boolean;
  /** False if the lease is lost, the batch has ended, or this process was frozen and is not confirmed yet. */
  maySend(): boolean;
  /**
   * This process was frozen, and PostgreSQL has not answered for 5 s since. Whether the chunk still holds
   * its range is unknown, so it should run elsewhere.
   */
  readonly unconfirmed: boolean;
  /** Sets the object that holds the counts of the chunk's range; it is read at every tick. */
  trackCounts(counts: { readonly completed: number; readonly failed: number }): void;
  /** Registers a listener for changes of `lost`, `terminal` and `stopCause`. */
  onChange(listener: () => void): void;
  /** Gives the range back with its final counts; written at once if PostgreSQL answers. */
  release(final: { to: number; completed: number; failed: number }): Promise<void>;
}

/** The methods of the progress reporter that its leases call. */
export interface LeaseKeeper {
  /** This process was frozen, and PostgreSQL has not answered since. */
  isFrozen(): boolean;
  /** This process was frozen, and PostgreSQL has not answered for 5 s since. */
  isUnconfirmed(): boolean;
  /** Writes all leases once. Resolves even if PostgreSQL hangs. */
  flush(): Promise<void>;
  forget(lease: Lease): void;
}

/** A lease that its keeper updates with the answers of the database. */
export class Lease implements ChunkLease {
  readonly key: ChunkKey;
  epoch: number | null = null;
  to: number;
  lost = false;
  terminal = false;
  stopCause: StopCause | null = null;
  readonly #keeper: LeaseKeeper;
  #counts: { readonly completed: number; readonly failed: number } = { completed: 0, failed: 0 };
  #released = false;
  #listener: (() => void) | null = null;

  constructor(key: ChunkKey & { to: number }, keeper: LeaseKeeper) {
    this.key = { batchId: key.batchId, safeModel: key.safeModel, from: key.from };
    this.to = key.to;
    this.#keeper = keeper;
  }

  get sortKey(): string {
    return sortKeyOf(this.key);
  }

  maySend(): boolean {
    return !this.lost && !this.terminal && !this.#keeper.isFrozen();
  }

  get unconfirmed(): boolean {
    return this.#keeper.isUnconfirmed();
  }

  trackCounts(counts: { readonly completed: number; readonly failed: number }): void {
    this.#counts = counts;
  }

  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  async release(final: { to: number; completed: number; failed: number }): Promise<void> {
    this.to = final.to;
    this.#counts = final;
    this.#released = true;
    // Without an epoch there is no row to release, and a frozen process is unlikely to get one now.
    if (this.epoch !== null || !this.#keeper.isFrozen()) await this.#keeper.flush();
    this.#keeper.forget(this);
  }

  /** Marks the lease as lost, because a later attempt at the same chunk runs in this process. */
  supersede(): void {
    this.lost = true;
    this.#listener?.();
  }

  apply(verdict: ProgressVerdict): void {
    const changed =
      (!verdict.held && !this.lost) ||
      verdict.stopCause !== this.stopCause ||
      (verdict.status !== null && isTerminal(verdict.status) && !this.terminal);
    this.lost ||= !verdict.held;
    this.stopCause = verdict.stopCause;
    this.terminal = verdict.status !== null && isTerminal(verdict.status);
    if (changed) this.#listener?.();
  }

  toRow(): ProgressRow {
    const epoch = this.epoch ?? 0;
    const { completed, failed } = this.#counts;
    return { ...this.key, to: this.to, epoch, completed, failed, released: this.#released };
  }
}

/** A key that is equal for all attempts at one chunk, and sorts like the rows. */
export function sortKeyOf(key: ChunkKey): string {
  return `${key.batchId}/${key.safeModel}/${String(key.from).padStart(12, '0')}`;
}
