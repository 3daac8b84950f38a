import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from '../../platform/logger';
import type { ChunkLease, LeaseKeeper } from './chunk-lease';
import { Lease, sortKeyOf } from './chunk-lease';
import { createOutageLog, type OutageLog } from './outage-log';
import type { ChunkKey } from './progress-sql';
import { AT_WORK_MS, showCounts, takeEpoch, touchRows, unreleased } from './progress-sql';

/**
 * Progress and fence of all chunks of this process (execution §3): one statement a second carries
 * every chunk's counts out and brings back whether the chunk still holds its row and whether its
 * batch has been stopped. Postgres being away fails no chunk: it then runs unfenced.
 */
export interface ProgressReporter {
  /**
   * Takes the chunk's row; returns at once, the number arrives in the background when Postgres is away.
   * Where a holder is at work an attempt may be one that comes late, given to a process that stood still
   * or was cut off: it waits for the answer to its first heartbeat, and takes nothing (the lease is
   * lost) when `signal` says that it is not wanted any more.
   */
  begin(key: ChunkKey & { to: number }, signal?: AbortSignal): Promise<ChunkLease>;
  /** Resolves when no chunk of the batch is at work: released, untouched for 5 s, or `limitMs` over. */
  awaitReleased(batchId: string, limitMs: number): Promise<void>;
  /** A stop of this batch was claimed: its chunks here hear of it now instead of with the next tick. */
  hurry(batchId: string): void;
  close(): Promise<void>;
}

export interface ProgressOptions {
  readonly pool: Pool;
  readonly worker: string;
  readonly logger: Logger;
  /** Told of each tick that Postgres did not take, for metrics. */
  readonly onFailed?: () => void;
  readonly intervalMs?: number;
}

const FROZEN_MS = 2_000;
/** Longest that chunks of a process that stood still wait for word; then they are better off elsewhere. */
const UNHEARD_MS = 5_000;
/** In which Temporal answers a heartbeat; the fence may take 2 s in all (execution §3). */
const HEARTBEAT_ANSWER_MS = 500;
const UNTOUCHED_MS = 5_000;

/** {@link ProgressReporter} over a pool whose statements time out after 2 s. */
export function createProgressReporter(options: ProgressOptions): ProgressReporter {
  return new Reporter(options);
}

class Reporter implements ProgressReporter, LeaseKeeper {
  readonly #options: ProgressOptions;
  readonly #intervalMs: number;
  readonly #leases = new Set<Lease>();
  readonly #timer: NodeJS.Timeout;
  readonly #writing: OutageLog;
  readonly #taking: OutageLog;
  #lastTickMs = monotonicMs();
  /** When a standstill was noticed, until one statement that was begun after it is answered. */
  #frozenSinceMs: number | null = null;
  /** Grows whenever a standstill is noticed: an answer to an older statement says nothing of after. */
  #standstills = 0;
  #tick: Promise<void> | null = null;
  /** What follows the tick under way, for those who asked since it began. */
  #next: Promise<void> | null = null;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? 1_000;
    this.#writing = createOutageLog(options.logger, {
      begins: 'progress not written; it is tried every second',
      ends: 'progress is written again',
    });
    this.#taking = createOutageLog(options.logger, {
      begins: 'chunks run unfenced for now',
      ends: 'chunks are fenced again',
    });
    this.#timer = setInterval(() => this.#onTimer(), this.#intervalMs);
    this.#timer.unref();
  }

  async begin(key: ChunkKey & { to: number }, signal?: AbortSignal): Promise<ChunkLease> {
    const lease = new Lease(key, this);
    const taken = await this.#take(lease, { yielding: signal !== undefined });
    if (taken === 'yielded') {
      await sleep(HEARTBEAT_ANSWER_MS, undefined, { signal }).catch(() => undefined);
      if (signal?.aborted === true) {
        lease.supersede();
        return lease;
      }
      await this.#take(lease, { yielding: false });
    }
    this.#leases.add(lease);
    return lease;
  }

  async awaitReleased(batchId: string, limitMs: number): Promise<void> {
    const endMs = monotonicMs() + limitMs;
    while (monotonicMs() < endMs) {
      const state = await unreleased(this.#options.pool, batchId);
      if (state.rows === 0 || state.touchedMsAgo >= UNTOUCHED_MS) return;
      await sleep(Math.min(200, endMs - monotonicMs()));
    }
  }

  hurry(batchId: string): void {
    for (const lease of this.#leases) {
      if (lease.key.batchId === batchId) return void this.flush();
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await (this.#next ?? this.#tick);
  }

  /**
   * A tick that comes late means that this process stood still, and that others may have taken over:
   * nothing is sent until the database has answered once.
   */
  isFrozen(): boolean {
    if (monotonicMs() - this.#lastTickMs > this.#intervalMs + FROZEN_MS) {
      this.#frozenSinceMs ??= monotonicMs();
      this.#standstills++;
    }
    return this.#frozenSinceMs !== null;
  }

  isUnheard(): boolean {
    return this.#frozenSinceMs !== null && monotonicMs() - this.#frozenSinceMs > UNHEARD_MS;
  }

  /** Writes now, or right after what is under way; ends also while Postgres hangs. */
  flush(): Promise<void> {
    if (this.#tick === null) {
      this.#tick = this.#write().finally(() => (this.#tick = null));
      return this.#tick;
    }
    this.#next ??= this.#tick.then(() => {
      this.#next = null;
      return this.flush();
    });
    return this.#next;
  }

  forget(lease: Lease): void {
    this.#leases.delete(lease);
  }

  #onTimer(): void {
    this.isFrozen();
    this.#lastTickMs = monotonicMs();
    // A tick that is late brings all that this one would.
    if (this.#tick === null) void this.flush();
  }

  async #write(): Promise<void> {
    const isTaken = await this.#takeMissing();
    const byKey = new Map<string, Lease>();
    for (const lease of this.#leases) {
      const known = byKey.get(lease.sortKey);
      if (lease.epoch === null || (known?.epoch ?? -1) > lease.epoch) continue;
      known?.supersede();
      byKey.set(lease.sortKey, lease);
    }
    const leases = [...byKey.keys()].sort().map((key) => byKey.get(key) as Lease);
    // A process that stood still asks even with no rows to write: until it is answered, none may send.
    if (leases.length === 0 && !this.isFrozen()) {
      if (!isTaken) this.#options.onFailed?.();
      return;
    }
    try {
      this.isFrozen();
      const standstills = this.#standstills;
      const verdicts = await touchRows(
        this.#options.pool,
        leases.map((lease) => lease.toRow()),
      );
      if (standstills === this.#standstills) this.#frozenSinceMs = null;
      for (const verdict of verdicts) byKey.get(sortKeyOf(verdict))?.hear(verdict);
      await showCounts(this.#options.pool, [...new Set(leases.map((lease) => lease.key.batchId))]);
      this.#writing.worked();
    } catch (error) {
      // Errors of this statement never fail a chunk: it goes on, unfenced, and is heard later.
      this.#options.onFailed?.();
      this.#writing.failed(error);
    }
  }

  /** Numbers for chunks that began without; the first that is not to be had stands for all: false. */
  async #takeMissing(): Promise<boolean> {
    for (const lease of this.#leases) {
      if (lease.epoch !== null) continue;
      if ((await this.#take(lease, { yielding: false })) === 'failed') return false;
    }
    return true;
  }

  async #take(
    lease: Lease,
    { yielding }: { yielding: boolean },
  ): Promise<'taken' | 'yielded' | 'failed'> {
    try {
      const { key, to } = lease;
      const taken = await takeEpoch(this.#options.pool, {
        ...key,
        to,
        worker: this.#options.worker,
        yielding,
      });
      this.#taking.worked();
      if (taken.epoch === null) return 'yielded';
      lease.epoch = taken.epoch;
      const { status, stopCause } = taken;
      lease.hear({ ...key, held: true, status, stopCause });
      const ago = taken.earlierTouchedMsAgo;
      // The earlier holder learns with its next tick that the row is ours; it cannot release a row that
      // it no longer holds, so the time it has for that is simply waited out.
      if (ago !== null && ago < AT_WORK_MS) await sleep(AT_WORK_MS - ago);
      return 'taken';
    } catch (error) {
      this.#taking.failed(error);
      return 'failed';
    }
  }
}

function monotonicMs(): number {
  return performance.now();
}
