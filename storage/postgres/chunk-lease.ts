import type { StopCause } from '../../core/batch/status';
import { isTerminal } from '../../core/batch/status';
import type { ChunkKey, ProgressRow, ProgressVerdict } from './progress-sql';

/** One attempt's hold on its range. */
export interface ChunkLease {
  /** Somebody with a higher number holds the range: send nothing more, write no seal. */
  readonly lost: boolean;
  readonly stopCause: StopCause | null;
  /** The batch has ended: its chunks send nothing. */
  readonly terminal: boolean;
  /** False while this process may have been frozen and nothing has been heard since. */
  maySend(): boolean;
  /**
   * Nothing has been heard for so long since this process stood still that the chunk is better off
   * elsewhere; whether it still holds its range it does not know.
   */
  readonly unheard: boolean;
  /** Where the counts over the chunk's range stand; read at every tick. */
  follow(counts: { readonly completed: number; readonly failed: number }): void;
  /** Called whenever the verdict changes. */
  onChange(listener: () => void): void;
  /** The last word: range, counts and `released`, written at once where Postgres answers. */
  release(final: { to: number; completed: number; failed: number }): Promise<void>;
}

/** What a lease asks of the reporter that keeps it. */
export interface LeaseKeeper {
  /** This process may have stood still, and has heard nothing since. */
  isFrozen(): boolean;
  /** It has heard nothing for long since. */
  isUnheard(): boolean;
  /** Writes all leases once; does not wait for a Postgres that hangs. */
  flush(): Promise<void>;
  forget(lease: Lease): void;
}

/** A lease that its keeper fills with what the database says. */
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

  get unheard(): boolean {
    return this.#keeper.isUnheard();
  }

  follow(counts: { readonly completed: number; readonly failed: number }): void {
    this.#counts = counts;
  }

  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  async release(final: { to: number; completed: number; failed: number }): Promise<void> {
    this.to = final.to;
    this.#counts = final;
    this.#released = true;
    // Without a number there is no row to let go, and who hears nothing will hardly get one now.
    if (this.epoch !== null || !this.#keeper.isFrozen()) await this.#keeper.flush();
    this.#keeper.forget(this);
  }

  /** A later attempt of the same chunk runs in this very process. */
  supersede(): void {
    this.lost = true;
    this.#listener?.();
  }

  hear(verdict: ProgressVerdict): void {
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

/** Equal for the attempts at one chunk, and in the order of the rows. */
export function sortKeyOf(key: ChunkKey): string {
  return `${key.batchId}/${key.safeModel}/${String(key.from).padStart(12, '0')}`;
}
