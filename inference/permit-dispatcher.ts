import type { SendMark } from '../core/dispatch/adaptive-limit';
import type { LoadSignal } from '../core/dispatch/outcome';
import { PRIORITY } from '../core/chunks/priority';
import { NightshiftError } from '../core/errors';
import { AbortFanOut } from './abort-fan-out';
import type { AcquireRequest, Dispatcher, GatewayLimit, ModelLimit, Permit } from './dispatcher';
import { ModelSlots } from './model-slots';
import { PermitStage, type Waiter } from './permit-stage';

/** Limits of one process and whom to tell when they cannot be trusted. */
export interface PermitDispatcherOptions {
  /** `concurrency.global`: permits of this process. */
  readonly global: number;
  /** `concurrency.per_model`: permits of one `AcquireRequest.model`. */
  readonly perModel: number;
  /** `concurrency.adaptive`: whether replies lower and raise the limit of their model. */
  readonly adaptive?: boolean;
  /** `concurrency.tenant_weights`; a tenant that is not listed has weight 1. */
  readonly weights?: Readonly<Record<string, number>>;
  /** Called once, at the first permit released twice: a bug that must not be hidden (seed 000). */
  readonly onGuardTripped: (error: NightshiftError) => void;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/** The dispatcher with a way to ask without waiting, and its gauges. */
export interface PermitDispatcher extends Dispatcher {
  /** A permit at once, or null where `acquire` would wait. */
  tryAcquire(request: AcquireRequest): Permit | null;
  /** What `model` may have in flight now, and whether it is paused. */
  limitOf(model: string): ModelLimit;
  /** For gauges; models without permits, waiters and a learnt limit are left out. */
  stats(): PermitStats;
}

/** A snapshot of permits and waiters. */
export interface PermitStats {
  readonly inFlight: number;
  readonly limit: number;
  readonly waiting: number;
  readonly guardTripped: boolean;
  readonly models: readonly ModelStats[];
  /** Gateways with a limit of their own; permits of waiters for a global one are included. */
  readonly gateways: readonly { readonly key: string; readonly held: number }[];
}

/** A snapshot of one model. */
export interface ModelStats extends ModelLimit {
  readonly model: string;
  readonly inFlight: number;
  readonly waiting: number;
}

/** Idle models whose lowered limit is remembered. */
const REMEMBERED_MODELS = 1_000;

/**
 * Permits per model, then gateway, then global, released in reverse order. The order is seed 000's:
 * whoever waits for a wider permit holds only narrower ones, so it holds back its own model, and no
 * other one. Each wait is ordered by a {@link FairQueue}.
 *
 * The limit of a model is learnt from the replies of its server ({@link AdaptiveLimit}). A cut aborts
 * nothing; waiters that already hold a slot above the new limit go back to the front of their queue.
 *
 * No polling: a release hands its permit to the next in line before it returns. The only timer ends a
 * server's `Retry-After`: one for each paused model that somebody waits for.
 */
export function createPermitDispatcher(options: PermitDispatcherOptions): PermitDispatcher {
  for (const name of ['global', 'perModel'] as const) {
    if (Number.isInteger(options[name]) && options[name] >= 1) continue;
    throw new RangeError(`${name} must be a whole number of at least 1, got ${options[name]}`);
  }
  return new StagedDispatcher(options);
}

class StagedDispatcher implements PermitDispatcher {
  readonly #options: PermitDispatcherOptions;
  readonly #weightOf: (tenant: string) => number;
  readonly #now: () => number;
  readonly #models = new Map<string, ModelSlots>();
  readonly #gateways = new Map<string, PermitStage>();
  readonly #global: PermitStage;
  readonly #aborts = new AbortFanOut();
  #guardTripped = false;

  constructor(options: PermitDispatcherOptions) {
    const { global, weights = {} } = options;
    this.#options = options;
    this.#weightOf = (tenant) => (Object.hasOwn(weights, tenant) ? (weights[tenant] ?? 1) : 1);
    this.#now = options.now ?? (() => performance.now());
    this.#global = new PermitStage((held) => held < global, this.#weightOf);
  }

  tryAcquire(request: AcquireRequest): Permit | null {
    const slots = this.#slotsOf(request);
    for (const stage of slots.path) {
      if (stage.isOpen) continue;
      this.#forgetIfIdle(slots);
      return null;
    }
    for (const stage of slots.path) stage.held++;
    return new StagedPermit(this, slots);
  }

  acquire(request: AcquireRequest, signal?: AbortSignal): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const permit = this.tryAcquire(request);
    return permit ? Promise.resolve(permit) : this.#wait(request, signal);
  }

  limitOf(model: string): ModelLimit {
    const max = this.#options.perModel;
    return this.#models.get(model)?.describe() ?? { limit: max, max, pausedMs: 0 };
  }

  stats(): PermitStats {
    const models = [...this.#models.values()].map((slots) => ({
      ...{ model: slots.model, inFlight: slots.inFlight, waiting: slots.waiting },
      ...slots.describe(),
    }));
    return {
      inFlight: models.reduce((sum, { inFlight }) => sum + inFlight, 0),
      limit: this.#options.global,
      waiting: models.reduce((sum, { waiting }) => sum + waiting, 0),
      guardTripped: this.#guardTripped,
      models,
      gateways: [...this.#gateways].map(([key, { held }]) => ({ key, held })),
    };
  }

  /** Called by a permit: the server of its model has replied. */
  learn(slots: ModelSlots, reply: { signal: LoadSignal; mark: SendMark; pauseMs: number }): void {
    const { signal, mark, pauseMs } = reply;
    const nowMs = signal === 'overload' ? this.#now() : 0;
    slots.limit?.onReply({ signal, mark, pauseMs, nowMs });
    if (signal === 'overload') this.#callBack(slots);
    else this.#fill(slots, 0);
  }

  /** Called by a permit, once: global first, so that nobody overtakes the one who waits for it. */
  free(slots: ModelSlots): void {
    for (let at = slots.path.length - 1; at >= 0; at--) this.#freeStage(slots, at);
    this.#forgetIfIdle(slots);
  }

  tripGuard(model: string): void {
    if (this.#guardTripped) return;
    this.#guardTripped = true;
    const message = `a permit of ${model} was released twice: the limits can no longer be trusted`;
    this.#options.onGuardTripped(new NightshiftError('permit_released_twice', message));
  }

  #wait(request: AcquireRequest, signal: AbortSignal | undefined): Promise<Permit> {
    return new Promise((resolve, reject) => {
      let unsubscribe: (() => void) | null = null;
      const waiter: Waiter = {
        request,
        slots: this.#slotsOf(request),
        at: 0,
        place: null,
        grant: (permit) => {
          unsubscribe?.();
          resolve(permit);
        },
      };
      if (signal) {
        unsubscribe = this.#aborts.add(signal, () => {
          this.#leave(waiter);
          reject(abortError(signal));
        });
      }
      this.#enter(waiter, 0);
    });
  }

  /** Takes slots from stage `at` on, and waits at the first one without room. */
  #enter(waiter: Waiter, at: number): void {
    const { slots } = waiter;
    for (let i = at; i < slots.path.length; i++) {
      const stage = slots.path[i] as PermitStage;
      if (!stage.isOpen) return this.#queue(waiter, stage, i);
      stage.held++;
    }
    this.#grant(waiter);
  }

  #queue(waiter: Waiter, stage: PermitStage, at: number): void {
    const { slots, request } = waiter;
    const { tenant, priority = PRIORITY.normal } = request;
    waiter.at = at;
    waiter.place = stage.queue.push(waiter, { tenant, model: slots.model, priority });
    if (at > 0) slots.staged.add(waiter);
    else this.#awaitEndOfPause(slots);
  }

  #grant(waiter: Waiter): void {
    waiter.slots.staged.delete(waiter);
    waiter.grant(new StagedPermit(this, waiter.slots));
  }

  /** Gives room in a stage to those who wait for it. */
  #fill(slots: ModelSlots, at: number): void {
    const stage = slots.path[at] as PermitStage;
    while (stage.queue.size > 0 && stage.hasRoom) {
      const waiter = stage.queue.shift()?.item;
      if (waiter === undefined) return;
      stage.held++;
      // Its model may have another path than the one whose release made room.
      this.#enter(waiter, waiter.at + 1);
    }
  }

  #freeStage(slots: ModelSlots, at: number): void {
    const stage = slots.path[at] as PermitStage;
    stage.held--;
    this.#fill(slots, at);
  }

  #leave(waiter: Waiter): void {
    const { slots, at, place } = waiter;
    if (place !== null) slots.path[at]?.queue.remove(place);
    slots.staged.delete(waiter);
    for (let i = at - 1; i >= 0; i--) this.#freeStage(slots, i);
    if (slots.stage.queue.size === 0) stopTimer(slots);
    this.#forgetIfIdle(slots);
  }

  /** After a cut or in a pause: takes slots from waiters that hold one and are not in flight yet. */
  #callBack(slots: ModelSlots): void {
    const called = slots.excess === 0 ? [] : [...slots.staged].slice(-slots.excess).reverse();
    for (const { at, place } of called) {
      if (place !== null) slots.path[at]?.queue.remove(place);
    }
    const left: [slots: ModelSlots, at: number][] = [];
    for (const waiter of called) {
      slots.staged.delete(waiter);
      slots.stage.held--;
      for (let i = waiter.at - 1; i > 0; i--) left.push([slots, i]);
      waiter.at = 0;
      if (waiter.place !== null) slots.stage.queue.giveBack(waiter.place);
    }
    for (const [freed, at] of left) this.#freeStage(freed, at);
    this.#awaitEndOfPause(slots);
  }

  #awaitEndOfPause(slots: ModelSlots): void {
    const { pausedMs } = slots;
    if (pausedMs === 0 || slots.timer !== null || slots.stage.queue.size === 0) return;
    slots.timer = setTimeout(() => {
      slots.timer = null;
      this.#fill(slots, 0);
      // The server may have asked for more time meanwhile; timers may also fire a little early.
      this.#awaitEndOfPause(slots);
    }, Math.ceil(pausedMs));
    slots.timer.unref();
  }

  #slotsOf({ model, gateway }: AcquireRequest): ModelSlots {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    if (this.#models.size >= REMEMBERED_MODELS) this.#forgetOneIdle();
    const { perModel, adaptive = false } = this.#options;
    const wider = gateway === undefined ? [] : [this.#gatewayOf(gateway)];
    const slots = new ModelSlots({
      ...{ model, max: perModel, adaptive, weightOf: this.#weightOf, now: this.#now },
      wider: [...wider, this.#global],
    });
    this.#models.set(model, slots);
    return slots;
  }

  #gatewayOf({ key, limit }: GatewayLimit): PermitStage {
    let stage = this.#gateways.get(key);
    if (stage === undefined) {
      stage = new PermitStage((held) => held < limit, this.#weightOf);
      this.#gateways.set(key, stage);
    }
    return stage;
  }

  /** Any number of model names may pass by over the months. */
  #forgetIfIdle(slots: ModelSlots): void {
    if (slots.isIdle && slots.isFresh) this.#models.delete(slots.model);
  }

  /** Of idle models with a lowered limit the one that was first used; its limit is learnt anew. */
  #forgetOneIdle(): void {
    for (const slots of this.#models.values()) {
      if (slots.isIdle) return void this.#models.delete(slots.model);
    }
  }
}

class StagedPermit implements Permit {
  readonly #dispatcher: StagedDispatcher;
  readonly #slots: ModelSlots;
  #mark: SendMark | null = null;
  #released = false;

  constructor(dispatcher: StagedDispatcher, slots: ModelSlots) {
    this.#dispatcher = dispatcher;
    this.#slots = slots;
  }

  sent(): number | null {
    this.#mark = this.#slots.limit?.mark ?? null;
    return this.#mark?.limit ?? null;
  }

  replied(signal: LoadSignal, pauseMs: number): void {
    const mark = this.#mark;
    this.#mark = null;
    if (mark === null || signal === 'none') return;
    this.#dispatcher.learn(this.#slots, { signal, mark, pauseMs });
  }

  release(): void {
    if (this.#released) return this.#dispatcher.tripGuard(this.#slots.model);
    this.#released = true;
    this.#dispatcher.free(this.#slots);
  }
}

function stopTimer(slots: ModelSlots): void {
  if (slots.timer !== null) clearTimeout(slots.timer);
  slots.timer = null;
}

function abortError(signal: AbortSignal): DOMException {
  const error = new DOMException('the wait for a permit was aborted', 'AbortError');
  error.cause = signal.reason;
  return error;
}
