import { AdaptiveLimit } from '../core/dispatch/adaptive-limit';
import type { PermitQueueOptions, QueueTurn } from '../core/dispatch/permits/permit-queue';
import type { PermitRequest } from '../core/dispatch/permits/permit-turn';
import type { ModelLimit, Permit } from './dispatcher';
import type { PermitSource, PermitSupply, PermitUser } from './loans/permit-source';
import type { PermitSetting } from './permit-setting';
import { PermitStage, suppliedBy } from './permit-stage';

/** A limit that requests pass. */
export type Stage = PermitStage<Waiter>;

/** A request that waits for a permit. */
export interface Waiter {
  readonly request: PermitRequest;
  readonly permits: ModelPermits;
  /** One for each stage that it has passed, in the order of the path of its model. */
  readonly passed: StageTurn[];
  /** The stage in which it waits is `path[passed.length]`; this is its place there. */
  waiting: StageTurn | null;
  /** Gives it its permit, which {@link handOver} hands over. */
  grant(permit: Permit): void;
  handOver(): void;
}

/** A request at one stage: it waits there, or holds a permit. */
export type StageTurn = QueueTurn<Waiter | null>;

/** The limits and settings of one model. */
export interface ModelPermitsOptions {
  readonly model: string;
  /** `concurrency.per_model`. */
  readonly max: number;
  /** Where its permits come from. */
  readonly source: PermitSource;
  /** Called when there are more permits than before. */
  readonly onMore: (stage: Stage) => void;
  readonly adaptive: boolean;
  /** The limits of gateway and process, in the order in which they are taken. */
  readonly wider: readonly Stage[];
  readonly queue: PermitQueueOptions;
  /** Weight of the model: costs of its requests count less the larger it is. */
  readonly weight: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** The permits of one model: its limit, and the requests that hold one or wait for one. */
export class ModelPermits {
  readonly model: string;
  readonly max: number;
  readonly weight: number;
  /** Null if the limit is fixed. */
  readonly limit: AdaptiveLimit | null;
  readonly stage: Stage;
  /** All limits that a request of this model has to pass, its own first. */
  readonly path: readonly Stage[];
  /** Waiters that hold a permit of the model and wait for a wider one. */
  readonly staged = new Set<Waiter>();
  /** Wakes the waiters at the end of a pause; null while none is set. */
  timer: NodeJS.Timeout | null = null;
  readonly #now: () => number;
  readonly #supply: PermitSupply;

  constructor(options: ModelPermitsOptions) {
    const { model, max, adaptive, wider, queue, weight, now } = options;
    this.model = model;
    this.max = max;
    this.weight = weight;
    this.#now = now;
    this.limit = adaptive ? new AdaptiveLimit(max) : null;
    this.#supply = options.source.open(`model ${model}`, max, this.#user(options.onMore));
    const supplied = suppliedBy(this.#supply);
    const hasRoom = (held: number): boolean => held < this.usable && this.pausedMs === 0;
    this.stage = new PermitStage({ ...supplied, hasRoom }, queue);
    this.path = [this.stage, ...wider];
  }

  get limitNow(): number {
    return this.limit?.limit ?? this.max;
  }

  /** How long nothing may be sent, ms; 0 outside a pause. */
  get pausedMs(): number {
    const untilMs = this.limit?.pausedUntilMs ?? 0;
    // Every request comes here, so the clock is read only after a first pause.
    return untilMs === 0 ? 0 : Math.max(0, untilMs - this.#now());
  }

  get inFlight(): number {
    return this.stage.held - this.staged.size;
  }

  get waiting(): number {
    return this.stage.queue.size + this.staged.size;
  }

  /** Whether no request holds or waits for a permit. */
  get isIdle(): boolean {
    return this.stage.held === 0 && this.stage.queue.size === 0;
  }

  /** Whether it can be forgotten while it is idle, because a new one would have the same limit. */
  get isFresh(): boolean {
    return this.limit === null || this.limit.isFresh(this.#now());
  }

  /** Permits that staged waiters must return: those above a lowered limit, or all of them in a pause. */
  get excess(): number {
    if (this.staged.size === 0) return 0;
    if (this.pausedMs > 0) return this.staged.size;
    return Math.min(this.staged.size, Math.max(0, this.stage.held - this.limitNow));
  }

  /** The setting that makes its requests wait; null if none waits, or if its limit is lowered. */
  get scarce(): PermitSetting | null {
    if (this.limitNow < this.max) return null;
    if (this.stage.queue.size > 0) return 'concurrency.per_model';
    for (const { passed } of this.staged) {
      return passed.length === this.path.length - 1 ? 'concurrency.global' : 'max_concurrency';
    }
    return null;
  }

  /** Requests that this process may have in flight now: a cut halves the smaller of loan and limit. */
  get usable(): number {
    return Math.min(this.limitNow, this.#supply.permits);
  }

  /** Gives back what was lent for it: nobody uses the model any more. */
  close(): void {
    this.#supply.close();
  }

  describe(): ModelLimit {
    return { limit: this.limitNow, max: this.max, pausedMs: this.pausedMs };
  }

  stopTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  #user(onMore: (stage: Stage) => void): PermitUser {
    // The stage is made after it.
    const [held, most] = [() => this.stage.held, () => this.#most];
    return {
      get held() {
        return held();
      },
      get most() {
        return most();
      },
      claims: () => this.stage.queue.claims(),
      onMore: () => onMore(this.stage),
    };
  }

  /** Permits that it can use at most; none but those that are held in a pause. */
  get #most(): number {
    if (this.pausedMs > 0) return this.stage.held;
    return this.limitNow < this.max ? this.limitNow : Infinity;
  }
}
