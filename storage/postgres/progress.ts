import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from '../../platform/logger';
import type { ChunkLease, LeaseKeeper } from './chunk-lease';
import { Lease, sortKeyOf } from './chunk-lease';
import { createOutageLog, type OutageLog } from './outage-log';
import type { ChunkKey } from './progress-sql';
import { AT_WORK_MS, showCounts, takeEpoch, touchRows, unreleased } from './progress-sql';

/**
 * Progress and fencing of all chunks of this process (docs/design/execution.md#progress-and-fencing). One
 * statement a second writes the counts of every chunk, and returns whether the chunk still holds its row
 * and whether its batch was stopped. An outage of PostgreSQL fails no chunk: chunks then run unfenced.
 */
export interface ProgressReporter {
  /**
   * Takes the row of a chunk. If PostgreSQL does not answer, nor a second time unless it was away before, it returns a
   * lease without an epoch, which it takes later in the background.
   *
   * With `signal`, it first yields to a holder at work: a process that was frozen or cut off may begin an
   * attempt that Temporal has given up. It calls `onYield`, which sends a heartbeat unless one is under way, and waits
   * 500 ms for the answer. If `signal` aborts, it returns a lost lease; otherwise it takes the row
   * (docs/design/execution.md#late-attempts).
   */
  begin(
    key: ChunkKey & { to: number },
    signal?: AbortSignal,
    onYield?: () => void,
  ): Promise<ChunkLease>;
  /** Resolves when all chunks of the batch are released or untouched for 5 s, or after `limitMs`. */
  awaitReleased(batchId: string, limitMs: number): Promise<void>;
  /** Checks the leases of a batch now instead of at the next tick, because a stop was claimed. */
  checkNow(batchId: string): void;
  close(): Promise<void>;
}

export interface ProgressOptions {
  readonly pool: Pool;
  readonly worker: string;
  readonly logger: Logger;
  /** Called for each tick that could not be written, for metrics. */
  readonly onFailed?: () => void;
  readonly intervalMs?: number;
}

/** A tick that is late by more than this means that the process was frozen. */
const FROZEN_MS = 2_000;
/** How long the chunks of a process that was frozen wait for PostgreSQL before they return. */
const UNCONFIRMED_MS = 5_000;
/** Temporal answers a heartbeat within this time. */
const HEARTBEAT_ANSWER_MS = 500;
/** A chunk whose row was not touched for this long has no worker. */
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
  /** When a standstill was noticed; null again once a statement that began after it is answered. */
  #frozenSinceMs: number | null = null;
  /** A statement that began before the latest standstill does not prove that the leases still hold. */
  #standstills = 0;
  #tick: Promise<void> | null = null;
  /** The tick after the running one, for calls of `flush` since that began. */
  #next: Promise<void> | null = null;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? 1_000;
    this.#writing = createOutageLog(options.logger, {
      begins: 'progress not written; retried every second',
      ends: 'progress is written again',
    });
    this.#taking = createOutageLog(options.logger, {
      begins: 'chunks run unfenced for now',
      ends: 'chunks are fenced again',
    });
    this.#timer = setInterval(() => this.#onTimer(), this.#intervalMs);
    this.#timer.unref();
  }

  async begin(
    key: ChunkKey & { to: number },
    signal?: AbortSignal,
    onYield?: () => void,
  ): Promise<ChunkLease> {
    const lease = new Lease(key, this);
    // One failure is no outage: a statement of a process that has just started may time out because of its own work.
    const tries = this.#taking.isOutage || this.#writing.isOutage ? 1 : 2;
    const taken = await this.#take(lease, { yielding: signal !== undefined, tries });
    if (taken === 'yielded') {
      onYield?.();
      await sleep(HEARTBEAT_ANSWER_MS, undefined, { signal }).catch(() => undefined);
      if (signal?.aborted === true) {
        lease.supersede();
        return lease;
      }
      await this.#take(lease, { yielding: false, tries });
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

  checkNow(batchId: string): void {
    for (const lease of this.#leases) {
      if (lease.key.batchId === batchId) return void this.flush();
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await (this.#next ?? this.#tick);
  }

  /**
   * A late tick means that this process was frozen and that others may have taken over its chunks. It
   * sends nothing until the database has answered (docs/design/execution.md#frozen-processes).
   */
  isFrozen(): boolean {
    this.#noticeStandstill();
    return this.#frozenSinceMs !== null;
  }

  isUnconfirmed(): boolean {
    return this.#frozenSinceMs !== null && monotonicMs() - this.#frozenSinceMs > UNCONFIRMED_MS;
  }

  /** Writes now, or right after the running tick. Resolves even if PostgreSQL hangs. */
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
    this.#noticeStandstill();
    this.#lastTickMs = monotonicMs();
    // If the previous tick still runs, the one after it writes the newest counts.
    if (this.#tick === null) void this.flush();
  }

  #noticeStandstill(): void {
    if (monotonicMs() - this.#lastTickMs <= this.#intervalMs + FROZEN_MS) return;
    this.#frozenSinceMs ??= monotonicMs();
    this.#standstills++;
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
    // A process that was frozen runs the statement even without rows: no chunk may send until it is answered.
    if (leases.length === 0 && !this.isFrozen()) {
      if (!isTaken) this.#options.onFailed?.();
      return;
    }
    try {
      this.#noticeStandstill();
      const standstills = this.#standstills;
      const verdicts = await touchRows(
        this.#options.pool,
        leases.map((lease) => lease.toRow()),
      );
      if (standstills === this.#standstills) this.#frozenSinceMs = null;
      for (const verdict of verdicts) byKey.get(sortKeyOf(verdict))?.apply(verdict);
      await showCounts(this.#options.pool, [...new Set(leases.map((lease) => lease.key.batchId))]);
      this.#writing.worked();
    } catch (error) {
      // An error fails no chunk: chunks go on unfenced, and the next tick tries again.
      this.#options.onFailed?.();
      this.#writing.failed(error);
    }
  }

  /** Takes epochs for chunks that began without one. Stops at the first failure and returns false. */
  async #takeMissing(): Promise<boolean> {
    for (const lease of this.#leases) {
      if (lease.epoch !== null) continue;
      if ((await this.#take(lease, { yielding: false, tries: 1 })) === 'failed') return false;
    }
    return true;
  }

  async #take(
    lease: Lease,
    { yielding, tries }: { readonly yielding: boolean; readonly tries: number },
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
      lease.apply({ ...key, held: true, status, stopCause });
      const ago = taken.earlierTouchedMsAgo;
      // The earlier holder learns with its next tick that it lost the row, and it cannot release a row that
      // it does not hold. So wait until that tick must have happened.
      if (ago !== null && ago < AT_WORK_MS) await sleep(AT_WORK_MS - ago);
      return 'taken';
    } catch (error) {
      if (tries > 1) return this.#take(lease, { yielding, tries: tries - 1 });
      this.#taking.failed(error);
      return 'failed';
    }
  }
}

function monotonicMs(): number {
  return performance.now();
}
