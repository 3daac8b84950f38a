import { AdaptiveLimit } from '../core/dispatch/adaptive-limit';
import type { ModelLimit } from './dispatcher';
import { PermitStage, type Waiter } from './permit-stage';

/** What one model's slots are made from. */
export interface ModelSlotsOptions {
  readonly model: string;
  /** `concurrency.per_model`. */
  readonly max: number;
  readonly adaptive: boolean;
  /** The wider limits, in the order in which they are taken. */
  readonly wider: readonly PermitStage[];
  readonly weightOf: (tenant: string) => number;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
}

/** The permits of one model: its limit, who waits for it, and who holds a slot of it. */
export class ModelSlots {
  readonly model: string;
  readonly max: number;
  /** Null if the limit is fixed. */
  readonly limit: AdaptiveLimit | null;
  readonly stage: PermitStage;
  /** All limits that a request of this model has to pass, its own first. */
  readonly path: readonly PermitStage[];
  /** Waiters that hold a slot of the model and wait for a wider one. */
  readonly staged = new Set<Waiter>();
  /** Ends a pause for those who wait; null while none is set. */
  timer: NodeJS.Timeout | null = null;
  readonly #now: () => number;

  constructor({ model, max, adaptive, wider, weightOf, now }: ModelSlotsOptions) {
    this.model = model;
    this.max = max;
    this.#now = now;
    this.limit = adaptive ? new AdaptiveLimit(max) : null;
    this.stage = new PermitStage((held) => held < this.limitNow && this.pausedMs === 0, weightOf);
    this.path = [this.stage, ...wider];
  }

  get limitNow(): number {
    return this.limit?.limit ?? this.max;
  }

  /** How long nothing may be sent, ms; 0 while it may. */
  get pausedMs(): number {
    const untilMs = this.limit?.pausedUntilMs ?? 0;
    // The clock is read only after a first pause: this runs for every request.
    return untilMs === 0 ? 0 : Math.max(0, untilMs - this.#now());
  }

  get inFlight(): number {
    return this.stage.held - this.staged.size;
  }

  get waiting(): number {
    return this.stage.queue.size + this.staged.size;
  }

  get isIdle(): boolean {
    return this.stage.held === 0 && this.stage.queue.size === 0;
  }

  /** Whether it may be forgotten while it is idle. */
  get isFresh(): boolean {
    return this.limit === null || this.limit.isFresh(this.#now());
  }

  /** Slots given out to waiters that must come back: those above a lowered limit, or all in a pause. */
  get excess(): number {
    if (this.staged.size === 0) return 0;
    if (this.pausedMs > 0) return this.staged.size;
    return Math.min(this.staged.size, Math.max(0, this.stage.held - this.limitNow));
  }

  describe(): ModelLimit {
    return { limit: this.limitNow, max: this.max, pausedMs: this.pausedMs };
  }
}
