import type { BatchWorkflows } from '../client/batch-workflows';
import type { Logger } from '../platform/logger';
import { within } from '../platform/within';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { BatchToStart } from '../storage/postgres/batches/types';

/**
 * Starts and cancels workflows. The row of a batch records what is to do, so a failure never reaches a
 * request: the work is retried later (docs/design/read-model.md#outbox).
 */
export interface Outbox {
  /**
   * Starts the workflow of a new row. Resolves when the workflow has started, or after `startWaitMs`. A
   * failed start is retried after 1, 5 and 15 s, and then by `startStragglers`.
   */
  start(batch: BatchToStart): Promise<void>;
  /** Signals a claimed cancel now, and again after 1, 5 and 15 s while the workflow has not received it. */
  signalCancel(batchId: string): void;
  /** Starts workflows of rows that are 15 s old and not marked as started. Runs by itself every 15 s. */
  startStragglers(): Promise<void>;
  /** Stops all timers and waits for calls under way. */
  close(): Promise<void>;
}

/** Dependencies of an outbox, and its times. The default times are those of {@link Outbox}. */
export interface OutboxOptions {
  readonly batches: Pick<BatchRepository, 'markStarted' | 'unstarted' | 'awaitsCancelSignal'>;
  readonly batchWorkflows: BatchWorkflows;
  readonly logger: Logger;
  readonly nowMs?: () => number;
  /** How long a request waits for the start of its workflow. */
  readonly startWaitMs?: number;
  readonly sweepEveryMs?: number;
  /** Age at which a row counts as a straggler. */
  readonly stragglerAgeMs?: number;
  /** The pause before each retry of a failed start. */
  readonly repeatStartAfterMs?: readonly number[];
  /** When to repeat the cancel signal, counted from the first signal. */
  readonly repeatCancelAfterMs?: readonly number[];
}

const START_WAIT_MS = 2_000;
const SWEEP_EVERY_MS = 15_000;
const STRAGGLER_AGE_MS = 15_000;
/** Most outages are short restarts of Temporal, so the first retry usually succeeds. */
const REPEAT_START_AFTER_MS = [1_000, 5_000, 15_000];
const REPEAT_CANCEL_AFTER_MS = [1_000, 5_000, 15_000];
const SWEEP_ROWS = 100;

/** The {@link Outbox} of one API process. Every API process runs one: starting a workflow is idempotent. */
export function createOutbox(options: OutboxOptions): Outbox {
  return new RowOutbox(options);
}

class RowOutbox implements Outbox {
  readonly #options: OutboxOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #sweepTimer: NodeJS.Timeout;
  #sweep: Promise<void> | null = null;
  #closing = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    const everyMs = options.sweepEveryMs ?? SWEEP_EVERY_MS;
    this.#sweepTimer = setInterval(() => void this.startStragglers(), everyMs);
    this.#sweepTimer.unref();
  }

  async start(batch: BatchToStart): Promise<void> {
    const waitMs = this.#options.startWaitMs ?? START_WAIT_MS;
    // A start that succeeds after the wait still counts.
    const started = this.#track(this.#tryStart(batch)).then((ok) => {
      if (!ok) this.#startLater(batch, 0);
    });
    await within(waitMs, started, () => undefined);
  }

  signalCancel(batchId: string): void {
    void this.#track(this.#trySignal(batchId));
    for (const afterMs of this.#options.repeatCancelAfterMs ?? REPEAT_CANCEL_AFTER_MS) {
      this.#after(afterMs, () => this.#signalAgain(batchId));
    }
  }

  startStragglers(): Promise<void> {
    this.#sweep ??= this.#track(this.#startStragglers()).finally(() => (this.#sweep = null));
    return this.#sweep;
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#sweepTimer);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await Promise.allSettled(this.#running);
  }

  async #startStragglers(): Promise<void> {
    const { batches, logger, nowMs = Date.now } = this.#options;
    const ageMs = this.#options.stragglerAgeMs ?? STRAGGLER_AGE_MS;
    try {
      const rows = await batches.unstarted(Math.floor((nowMs() - ageMs) / 1000), SWEEP_ROWS);
      for (const row of rows) {
        // Stop at the first failure: the other rows would wait for the same Temporal server.
        if (!(await this.#tryStart(row))) return;
        logger.info({ batchId: row.id }, 'straggling batch started');
      }
    } catch (error) {
      logger.warn({ err: error }, 'straggling batches not looked up');
    }
  }

  async #tryStart(batch: BatchToStart): Promise<boolean> {
    const { batches, batchWorkflows, logger } = this.#options;
    try {
      await batchWorkflows.start(batch);
      await batches.markStarted(batch.id);
      return true;
    } catch (error) {
      logger.warn({ err: error, batchId: batch.id }, 'workflow not started yet');
      return false;
    }
  }

  #startLater(batch: BatchToStart, repeat: number): void {
    const afterMs = (this.#options.repeatStartAfterMs ?? REPEAT_START_AFTER_MS)[repeat];
    if (afterMs === undefined || this.#closing) return;
    this.#after(afterMs, async () => {
      if (!(await this.#tryStart(batch))) this.#startLater(batch, repeat + 1);
    });
  }

  #after(ms: number, run: () => Promise<void>): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void this.#track(run());
    }, ms);
    timer.unref();
    this.#timers.add(timer);
  }

  async #signalAgain(batchId: string): Promise<void> {
    const { batches, logger } = this.#options;
    try {
      if (!(await batches.awaitsCancelSignal(batchId))) return;
    } catch (error) {
      logger.warn({ err: error, batchId }, 'cancelled batch not looked up');
    }
    await this.#trySignal(batchId);
  }

  async #trySignal(batchId: string): Promise<void> {
    try {
      await this.#options.batchWorkflows.cancel(batchId);
    } catch (error) {
      this.#options.logger.warn({ err: error, batchId }, 'cancel not signalled yet');
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    return work.finally(() => this.#running.delete(work));
  }
}
