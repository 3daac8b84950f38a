import type { StopCause } from '../../core/batch/status';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { Route } from '../../inference/registry';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { CancelReason } from './cancel-reason';
import type { Chunk } from './chunk';
import type { ExecuteDeps } from './deps';

/** What decides when an attempt exits. */
export interface ChunkExitOptions {
  readonly chunk: Chunk;
  readonly deps: Pick<ExecuteDeps, 'config' | 'drain'>;
  readonly route: Pick<Route, 'breaker' | 'backend'>;
  /** How long requests may be held before the chunk leaves without an answer, ms (`holdLimitMs`). */
  readonly holdLimitMs: number;
  readonly lease: ChunkLease;
  /** Whether requests are in flight and none has been answered yet. */
  awaitsFirstAnswer(): boolean;
  /** Called for the first exit reason and for later ones. From now on no new try begins. */
  onExit(): void;
  /** Requests that a gateway still holds must not be waited for any longer. */
  onGiveUpHeld(): void;
  /** Requests in flight must not be waited for any longer. */
  onAbort(): void;
}

/**
 * How long held requests may still be dispatched after the end of a time slice, ms. A close and a dispatch cross when a
 * process is late, and such a line is sent twice. Where many requests are dispatched each second, most queues are shorter
 * than this, and nothing is left to close (docs/design/held-requests.md#leaving).
 */
const HELD_GRACE_MS = 5_000;

/**
 * Decides when and why an attempt exits: the end of its time slice, a shutdown, a stop of its batch, or the
 * loss of its range (docs/design/execution.md#exit-reasons). From the first reason on, no new try begins.
 * Requests in flight are finished, or aborted if their answers would be useless or too late. Requests that a
 * gateway still holds are closed, after a grace if nothing but the time slice has ended (docs/design/held-requests.md).
 */
export class ChunkExit {
  readonly #o: ChunkExitOptions;
  readonly #abort = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #onDrain = (): void => this.exit(EXIT_REASON.drain);
  #reason: ExitReason | null = null;
  #stopCause: StopCause | null = null;
  #isOverdue = false;
  #givesUpHeld = false;

  constructor(options: ChunkExitOptions) {
    this.#o = options;
  }

  /** The first exit reason, except that `fenced` overrides all others; null while there is none. */
  get reason(): ExitReason | null {
    return this.#reason;
  }

  /** Set once the batch stops or its deadline has passed. */
  get stopCause(): StopCause | null {
    return this.#stopCause;
  }

  /** Whether the time slice has ended, but the chunk stays for its first answer. */
  get isOverdue(): boolean {
    return this.#isOverdue && this.#reason === null;
  }

  /** Whether a request that a gateway would only hold is not worth sending. */
  get givesUpHeld(): boolean {
    return this.#givesUpHeld;
  }

  /** Aborts when requests in flight must not be waited for any longer. */
  get abort(): AbortSignal {
    return this.#abort.signal;
  }

  /** Starts timers and listeners. {@link close} ends them. */
  watch(): void {
    const { chunk, deps, lease } = this.#o;
    this.#after(chunk.timeSliceMs, () => this.#endTimeSlice());
    this.#after(this.#o.holdLimitMs, () => this.#endHold());
    this.#after(chunk.deadlineMs - Date.now(), () => this.stop('expired'));
    if (deps.drain.aborted) this.#onDrain();
    deps.drain.addEventListener('abort', this.#onDrain);
    lease.onChange(() => this.#followLease());
    this.#followLease();
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#o.deps.drain.removeEventListener('abort', this.#onDrain);
  }

  /** The activity was cancelled. */
  onCancelled(reason: CancelReason): void {
    if (reason === 'drain') {
      // The drain budget is over. Another worker sends the requests in flight again.
      this.exit(EXIT_REASON.drain);
      this.#abortAll();
    }
    if (reason === 'superseded') this.exit(EXIT_REASON.fenced);
    if (reason === 'stop') this.stop(this.#o.lease.stopCause ?? this.#causeByClock());
  }

  /** The batch stops: requests in flight have the grace of `cause`. */
  stop(cause: StopCause): void {
    if (this.#stopCause !== null) return;
    this.#stopCause = cause;
    this.exit(EXIT_REASON.stopped);
    const { cancel_grace, expiry_grace } = this.#o.deps.config.batch;
    // There is no grace for a failed batch: its requests in flight may finish.
    if (cause === 'failed') return;
    this.#after(cause === 'expired' ? expiry_grace : cancel_grace, () => this.#abortAll());
  }

  /** Gives a reason to exit. */
  exit(reason: ExitReason): void {
    // First: requests end while they are aborted, and no other one may begin then.
    if (this.#reason === null || reason === EXIT_REASON.fenced) this.#reason = reason;
    // These two abort requests in flight, even if an earlier reason let them finish.
    if (reason === EXIT_REASON.fenced || reason === EXIT_REASON.rowTerminal) this.#abortAll();
    this.#o.onExit();
    if (reason === EXIT_REASON.timeSlice) this.#after(HELD_GRACE_MS, () => this.#giveUpHeld());
    else this.#giveUpHeld();
  }

  /**
   * A line was answered. This ends an overdue time slice. If the gateway reports dispatches, a new slice begins
   * instead: the chunk has waited for its turn, which has just come.
   */
  onAnswer(): void {
    if (!this.isOverdue) return;
    if (!this.#o.route.backend.reportsDispatch) return this.exit(EXIT_REASON.timeSlice);
    this.#isOverdue = false;
    this.#after(this.#o.chunk.timeSliceMs, () => this.exit(EXIT_REASON.timeSlice));
  }

  /**
   * A gateway gave a request up unserved. Unless the gateway reports dispatches, this ends an overdue time slice too:
   * it counts as no try, so with a gateway that drops everything the slice would have no end.
   */
  onDrop(): void {
    if (this.isOverdue && !this.#o.route.backend.reportsDispatch) this.exit(EXIT_REASON.timeSlice);
  }

  /** Nothing is in flight or will be soon. A gateway that holds nothing of an overdue chunk keeps it no longer. */
  onRest(): void {
    if (this.isOverdue && this.#o.route.backend.reportsDispatch) this.exit(EXIT_REASON.timeSlice);
  }

  #followLease(): void {
    const { lease } = this.#o;
    if (lease.lost) this.exit(EXIT_REASON.fenced);
    else if (lease.terminal) this.exit(EXIT_REASON.rowTerminal);
    else if (lease.stopCause !== null) this.stop(lease.stopCause);
  }

  /**
   * Exits. If requests are in flight and none is answered yet, the chunk becomes overdue instead, so that slow
   * models make progress.
   */
  #endTimeSlice(): void {
    const isOpen = this.#o.route.breaker.state === 'open';
    if (this.#o.awaitsFirstAnswer()) this.#isOverdue = true;
    else this.exit(isOpen ? EXIT_REASON.breakerOpen : EXIT_REASON.timeSlice);
  }

  /** Temporal would end the attempt as failed. A gateway that reports nothing need not: each try is bounded. */
  #endHold(): void {
    if (this.#o.route.backend.reportsDispatch) {
      this.exit(this.#isOverdue ? EXIT_REASON.held : EXIT_REASON.timeSlice);
    }
  }

  #giveUpHeld(): void {
    this.#givesUpHeld = true;
    this.#o.onGiveUpHeld();
  }

  #abortAll(): void {
    this.#abort.abort();
    this.#o.onAbort();
  }

  #causeByClock(): StopCause {
    return Date.now() >= this.#o.chunk.deadlineMs ? 'expired' : 'cancelled';
  }

  #after(ms: number, run: () => void): void {
    // Node's longest timer, 24 days, is longer than any attempt.
    this.#timers.add(setTimeout(run, Math.min(Math.max(0, ms), 2_147_483_647)));
  }
}
