import { PRIORITY } from '../core/chunks/priority';
import { NightshiftError } from '../core/errors';
import { AbortFanOut } from './abort-fan-out';
import type { AcquireRequest, Dispatcher, ModelLimit, Permit } from './dispatcher';
import type { ModelPermits, Stage, Waiter } from './model-permits';
import { PermitTable, type PermitLimits } from './permit-table';
import { StagedPermit, type LearnedReply, type PermitOwner } from './staged-permit';

/** The limits of one process, and a callback for when they can no longer be trusted. */
export interface PermitDispatcherOptions extends PermitLimits {
  /** Called once, when a permit is first released twice. This is a bug that breaks the limits. */
  readonly onGuardTripped: (error: NightshiftError) => void;
}

/** A dispatcher that can also grant without waiting, and report its state for gauges. */
export interface PermitDispatcher extends Dispatcher {
  /** A permit at once, or null if `acquire` would wait. */
  tryAcquire(request: AcquireRequest): Permit | null;
  /** What `model` may have in flight now, and whether it is paused. */
  limitOf(model: string): ModelLimit;
  /** For gauges; omits models that have no permits, no waiters and no lowered limit. */
  stats(): PermitStats;
}

/** A snapshot of permits and waiters. */
export interface PermitStats {
  readonly inFlight: number;
  readonly limit: number;
  readonly waiting: number;
  readonly guardTripped: boolean;
  readonly models: readonly ModelStats[];
  /** Gateways with a limit of their own; `held` includes permits of waiters for a process permit. */
  readonly gateways: readonly { readonly key: string; readonly held: number }[];
}

/** A snapshot of one model. */
export interface ModelStats extends ModelLimit {
  readonly model: string;
  readonly inFlight: number;
  readonly waiting: number;
}

/**
 * Permits per model, then gateway, then process, released in reverse order
 * (docs/design/execution.md#permits).
 *
 * The order decides which requests a limit delays. A request that waits for a wider permit holds only
 * narrower ones, so it delays its own model and no other. In the opposite order, requests of one overloaded
 * model would soon hold all permits of the process and stop every other model.
 *
 * Nothing polls. A release hands its permit to the next waiter before it returns, so a newcomer cannot
 * overtake. Only the end of a server's `Retry-After` needs a timer, one for each paused model with waiters.
 *
 * The limit of a model is learned from replies (core/dispatch/adaptive-limit.ts). A cut aborts no request
 * in flight. But a waiter that holds a model permit above the new limit would be sent as soon as a wider
 * permit is free, so it returns to the front of its model's queue.
 */
export function createPermitDispatcher(options: PermitDispatcherOptions): PermitDispatcher {
  for (const name of ['global', 'perModel'] as const) {
    if (Number.isInteger(options[name]) && options[name] >= 1) continue;
    throw new RangeError(`${name} must be a whole number of at least 1, got ${options[name]}`);
  }
  return new StagedDispatcher(options);
}

class StagedDispatcher implements PermitDispatcher, PermitOwner {
  readonly #options: PermitDispatcherOptions;
  readonly #table: PermitTable;
  readonly #aborts = new AbortFanOut();
  readonly #now: () => number;
  #isGuardTripped = false;

  constructor(options: PermitDispatcherOptions) {
    this.#options = options;
    this.#table = new PermitTable(options);
    this.#now = options.now ?? (() => performance.now());
  }

  tryAcquire(request: AcquireRequest): Permit | null {
    const permits = this.#table.permitsOf(request);
    if (!permits.path.every((stage) => stage.isOpen)) {
      this.#table.forgetIfIdle(permits);
      return null;
    }
    for (const stage of permits.path) stage.held++;
    return new StagedPermit(this, permits);
  }

  acquire(request: AcquireRequest, signal?: AbortSignal): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const permit = this.tryAcquire(request);
    return permit ? Promise.resolve(permit) : this.#wait(request, signal);
  }

  limitOf(model: string): ModelLimit {
    const max = this.#options.perModel;
    return this.#table.find(model)?.describe() ?? { limit: max, max, pausedMs: 0 };
  }

  stats(): PermitStats {
    const models = [...this.#table.models].map((permits) => ({
      ...{ model: permits.model, inFlight: permits.inFlight, waiting: permits.waiting },
      ...permits.describe(),
    }));
    return {
      inFlight: models.reduce((sum, { inFlight }) => sum + inFlight, 0),
      limit: this.#options.global,
      waiting: models.reduce((sum, { waiting }) => sum + waiting, 0),
      guardTripped: this.#isGuardTripped,
      models,
      gateways: [...this.#table.gateways].map(([key, { held }]) => ({ key, held })),
    };
  }

  learn(permits: ModelPermits, reply: LearnedReply): void {
    const { signal, mark, pauseMs } = reply;
    const isOverload = signal === 'overload';
    permits.limit?.onReply({ signal, mark, pauseMs, nowMs: isOverload ? this.#now() : 0 });
    if (isOverload) this.#recall(permits);
    else this.#fill(permits, 0);
  }

  free(permits: ModelPermits): void {
    this.#freeStages(permits, permits.path.length - 1);
    this.#table.forgetIfIdle(permits);
  }

  onSecondRelease(model: string): void {
    if (this.#isGuardTripped) return;
    this.#isGuardTripped = true;
    const message = `a permit of ${model} was released twice: the limits can no longer be trusted`;
    this.#options.onGuardTripped(new NightshiftError('permit_released_twice', message));
  }

  #wait(request: AcquireRequest, signal: AbortSignal | undefined): Promise<Permit> {
    return new Promise((resolve, reject) => {
      let unsubscribe: (() => void) | null = null;
      const waiter: Waiter = {
        request,
        permits: this.#table.permitsOf(request),
        at: 0,
        place: null,
        grant: (permit) => {
          unsubscribe?.();
          resolve(permit);
        },
      };
      if (signal) {
        unsubscribe = this.#aborts.add(signal, () => {
          this.#stopWaiting(waiter);
          reject(abortError(signal));
        });
      }
      this.#enter(waiter, 0);
    });
  }

  /** Takes permits from stage `at` on, and queues at the first stage that is not open. */
  #enter(waiter: Waiter, at: number): void {
    const { permits } = waiter;
    for (let i = at; i < permits.path.length; i++) {
      const stage = permits.path[i] as Stage;
      if (!stage.isOpen) return this.#queue(waiter, stage, i);
      stage.held++;
    }
    permits.staged.delete(waiter);
    waiter.grant(new StagedPermit(this, permits));
  }

  #queue(waiter: Waiter, stage: Stage, at: number): void {
    const { permits, request } = waiter;
    const { tenant, priority = PRIORITY.normal } = request;
    waiter.at = at;
    waiter.place = stage.queue.push(waiter, { tenant, model: permits.model, priority });
    if (at > 0) permits.staged.add(waiter);
    else this.#fillAfterPause(permits);
  }

  /** Grants free permits of a stage to its waiters. */
  #fill(permits: ModelPermits, at: number): void {
    const stage = permits.path[at] as Stage;
    while (stage.queue.size > 0 && stage.hasRoom) {
      const waiter = stage.queue.shift()?.item;
      if (waiter === undefined) return;
      stage.held++;
      // The waiter may be of another model, whose path differs from that of `permits`.
      this.#enter(waiter, waiter.at + 1);
    }
  }

  /** Frees stages `from` to 0, the widest first, so that waiters of the widest are served first. */
  #freeStages(permits: ModelPermits, from: number): void {
    for (let at = from; at >= 0; at--) this.#freeStage(permits, at);
  }

  #freeStage(permits: ModelPermits, at: number): void {
    const stage = permits.path[at] as Stage;
    stage.held--;
    this.#fill(permits, at);
  }

  #stopWaiting(waiter: Waiter): void {
    const { permits, at, place } = waiter;
    if (place !== null) permits.path[at]?.queue.remove(place);
    permits.staged.delete(waiter);
    this.#freeStages(permits, at - 1);
    if (permits.stage.queue.size === 0) permits.stopTimer();
    this.#table.forgetIfIdle(permits);
  }

  /** After a cut or in a pause: takes model permits back from waiters that are not in flight yet. */
  #recall(permits: ModelPermits): void {
    const { excess } = permits;
    const recalled = excess === 0 ? [] : [...permits.staged].slice(-excess).reverse();
    for (const { at, place } of recalled) {
      if (place !== null) permits.path[at]?.queue.remove(place);
    }
    const vacated: number[] = [];
    for (const waiter of recalled) {
      permits.staged.delete(waiter);
      permits.stage.held--;
      for (let at = waiter.at - 1; at > 0; at--) vacated.push(at);
      waiter.at = 0;
      if (waiter.place !== null) permits.stage.queue.giveBack(waiter.place);
    }
    // Freed last: this starts other waiters, which must see the final state of the queues.
    for (const at of vacated) this.#freeStage(permits, at);
    this.#fillAfterPause(permits);
  }

  #fillAfterPause(permits: ModelPermits): void {
    if (permits.timer !== null || permits.stage.queue.size === 0) return;
    const { pausedMs } = permits;
    // The pause may have ended since the caller found the stage closed. Then nothing else would wake the waiters.
    if (pausedMs === 0) return this.#fill(permits, 0);
    permits.timer = setTimeout(() => {
      permits.timer = null;
      this.#fill(permits, 0);
      // The server may have extended the pause meanwhile, and timers may fire a little early.
      this.#fillAfterPause(permits);
    }, Math.ceil(pausedMs));
    permits.timer.unref();
  }
}

function abortError(signal: AbortSignal): DOMException {
  const error = new DOMException('the wait for a permit was aborted', 'AbortError');
  error.cause = signal.reason;
  return error;
}
