import type { StopCause } from '../../core/batch/status';
import type { Route } from '../../inference/registry';
import type { ChunkLease } from '../../storage/postgres/chunk-lease';
import type { ExecuteChunkInput } from '../contract';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { ExecuteDeps } from './deps';

export interface ChunkExitOptions {
  readonly chunk: ExecuteChunkInput;
  readonly deps: Pick<ExecuteDeps, 'config' | 'drain'>;
  readonly route: Pick<Route, 'breaker'>;
  readonly lease: ChunkLease;
  /** Whether requests are in flight of which none has been answered yet. */
  awaitsFirstAnswer(): boolean;
  /** Called whenever a reason to leave has come. */
  readonly onExit: () => void;
}

/**
 * When and why a chunk leaves: the end of its box, a shutdown, a stop of its batch, the loss of its
 * range (execution §3, §4). From the first reason on no new try begins; what runs is finished or, where
 * nobody waits for it, aborted.
 */
export class ChunkExit {
  readonly #o: ChunkExitOptions;
  readonly #leaving = new AbortController();
  readonly #abort = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #onDrain = (): void => this.exit('drain');
  #reason: ExitReason | null = null;
  #stopCause: StopCause | null = null;
  #boxOver = false;

  constructor(options: ChunkExitOptions) {
    this.#o = options;
  }

  /** The first reason that struck; that the range is another one's wins over all. Null: it stays. */
  get reason(): ExitReason | null {
    return this.#reason;
  }

  get stopCause(): StopCause | null {
    return this.#stopCause;
  }

  /** Aborted as soon as there is a reason to leave. */
  get exiting(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Aborted when what is in flight is not waited for any longer. */
  get abort(): AbortSignal {
    return this.#abort.signal;
  }

  /** Begins to listen and to measure time; to be ended by {@link close}. */
  watch(): void {
    const { chunk, deps, lease } = this.#o;
    this.#after(chunk.boxMs, () => this.#endBox());
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

  /** The activity was cancelled: a stop, unless the worker is going down or nobody wants it any more. */
  cancelled(reason: 'stop' | 'drain' | 'gone'): void {
    if (reason === 'drain') {
      // The drain budget is over: what still runs will be sent again elsewhere.
      this.exit('drain');
      this.#abort.abort();
    }
    if (reason === 'gone') this.exit('fenced');
    if (reason === 'stop') this.stop(this.#o.lease.stopCause ?? this.#causeByClock());
  }

  stop(cause: StopCause): void {
    if (this.#stopCause !== null) return;
    this.#stopCause = cause;
    this.exit('stopped');
    const { cancel_grace, expiry_grace } = this.#o.deps.config.batch;
    // A failed batch drains: what runs may end in its own time.
    if (cause === 'failed') return;
    this.#after(cause === 'expired' ? expiry_grace : cancel_grace, () => this.#abort.abort());
  }

  exit(reason: ExitReason): void {
    // A stop or a lost hold also ends a drain that has begun for a milder reason.
    if (reason === 'fenced' || reason === 'row_terminal') this.#abort.abort();
    if (this.#reason === null || reason === 'fenced') this.#reason = reason;
    this.#leaving.abort();
    this.#o.onExit();
  }

  /** An answer has come. */
  answered(): void {
    if (this.#boxOver) this.exit('box');
  }

  #followLease(): void {
    const { lease } = this.#o;
    if (lease.lost) this.exit('fenced');
    else if (lease.terminal) this.exit('row_terminal');
    else if (lease.stopCause !== null) this.stop(lease.stopCause);
  }

  /** While no answer has come the box ends at the first answer: slow models make progress too. */
  #endBox(): void {
    if (this.#o.awaitsFirstAnswer()) this.#boxOver = true;
    else this.exit(this.#o.route.breaker.state === 'open' ? 'breaker_open' : 'box');
  }

  #causeByClock(): StopCause {
    return Date.now() >= this.#o.chunk.deadlineMs ? 'expired' : 'cancelled';
  }

  #after(ms: number, run: () => void): void {
    // Longer than a timer can be: it never fires within a chunk's life.
    this.#timers.add(setTimeout(run, Math.min(Math.max(0, ms), 2_147_483_647)));
  }
}
