import { PRIORITY } from '../core/chunks/priority';
import type { PermitRequest } from '../core/dispatch/permits/permit-turn';
import { NightshiftError } from '../core/errors';
import type {
  AcquireRequest,
  Dispatcher,
  ModelLimit,
  Permit,
  PermitWait,
  ReleaseHold,
} from './dispatcher';
import type { ModelPermits, Stage, StageTurn, Waiter } from './model-permits';
import { PermitTable, type PermitLimits } from './permit-table';
import type { PermitSetting } from './permit-setting';
import { StoppableWaiter, type WaitKeeper } from './permit-waiter';
import { StagedPermit, type LearnedReply, type PermitOwner } from './staged-permit';

/** The limits of one process, and a callback for when they can no longer be trusted. */
export interface PermitDispatcherOptions extends PermitLimits {
  /** Called once, when a permit is first released twice. This is a bug that breaks the limits. */
  readonly onGuardTripped: (error: NightshiftError) => void;
}

/** A dispatcher that can also grant without waiting, and report its state for gauges. */
export interface PermitDispatcher extends Dispatcher, ReleaseHold {
  /** A permit at once, or null if a request would have to wait. */
  tryAcquire(request: AcquireRequest): Permit | null;
  /** What `model` may have in flight now, and whether it is paused. */
  limitOf(model: string): ModelLimit;
  /**
   * The setting that makes requests of `model` wait for a permit; null if none waits, or if the limit of the model is
   * lowered because its server is overloaded.
   */
  scarcePermitOf(model: string): PermitSetting | null;
  /** Permits that were given back so far: requests that have ended. */
  readonly released: number;
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
 * (docs/design/permits.md#permits).
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

class StagedDispatcher implements PermitDispatcher, PermitOwner, WaitKeeper {
  readonly #options: PermitDispatcherOptions;
  readonly #table: PermitTable;
  readonly #now: () => number;
  /** Waiters that were granted a permit which is not handed over yet. */
  #granted: Waiter[] = [];
  /** Permits that were given back during a hold. */
  #freed: FreedPermit[] = [];
  #isHeld = false;
  #isGuardTripped = false;
  released = 0;

  constructor(options: PermitDispatcherOptions) {
    this.#options = options;
    this.#table = new PermitTable(options, (stage) => this.#fill(stage));
    this.#now = options.now ?? (() => performance.now());
  }

  tryAcquire(request: AcquireRequest): Permit | null {
    const permits = this.#table.permitsOf(request);
    const { path } = permits;
    for (const stage of path) {
      if (stage.isOpen) continue;
      this.#table.forgetIfIdle(permits);
      return null;
    }
    const asked = permitRequestOf(request, permits);
    const turns: StageTurn[] = [];
    for (const stage of path) turns.push(stage.take(null, asked));
    return new StagedPermit(this, permits, turns);
  }

  wait(request: AcquireRequest, onGranted: (permit: Permit) => void): PermitWait {
    const permits = this.#table.permitsOf(request);
    const asked = { request: permitRequestOf(request, permits), permits };
    const waiter = new StoppableWaiter(this, asked, onGranted);
    this.#advance(waiter);
    return waiter;
  }

  holdReleases(): void {
    this.#isHeld = true;
  }

  endHold(): void {
    this.#handOver();
    // Who cannot use a permit gives it back at once, so there may be more of them meanwhile.
    for (let at = 0; at < this.#freed.length; at++) {
      const { permits, turns, cost } = this.#freed[at] as FreedPermit;
      this.#free(permits, turns, cost);
      this.#handOver();
    }
    this.#freed = [];
    this.#isHeld = false;
  }

  limitOf(model: string): ModelLimit {
    const max = this.#options.perModel;
    return this.#table.find(model)?.describe() ?? { limit: max, max, pausedMs: 0 };
  }

  scarcePermitOf(model: string): PermitSetting | null {
    return this.#table.find(model)?.scarce ?? null;
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
    const nowMs = isOverload ? this.#now() : 0;
    permits.limit?.onReply({ signal, mark, pauseMs, nowMs, usable: permits.usable });
    if (isOverload) this.#recall(permits);
    else this.#fill(permits.stage);
  }

  free(permits: ModelPermits, turns: readonly StageTurn[], cost: number): void {
    this.released++;
    if (this.#isHeld) this.#freed.push({ permits, turns, cost });
    else this.#free(permits, turns, cost);
  }

  #free(permits: ModelPermits, turns: readonly StageTurn[], cost: number): void {
    this.#freeStages(permits, turns, { from: turns.length - 1, cost });
    this.#table.forgetIfIdle(permits);
  }

  onSecondRelease(model: string): void {
    if (this.#isGuardTripped) return;
    this.#isGuardTripped = true;
    const message = `a permit of ${model} was released twice: the limits can no longer be trusted`;
    this.#options.onGuardTripped(new NightshiftError('permit_released_twice', message));
  }

  stopWaiting(waiter: Waiter): void {
    const { permits, passed, waiting } = waiter;
    if (waiting !== null) permits.path[passed.length]?.queue.remove(waiting);
    permits.staged.delete(waiter);
    this.#freeStages(permits, passed, { from: passed.length - 1, cost: 0 });
    if (permits.stage.queue.size === 0) permits.stopTimer();
    this.#table.forgetIfIdle(permits);
  }

  /** Takes the permits that a waiter still needs, and makes it wait at the first stage that is not open. */
  #advance(waiter: Waiter): void {
    const { permits, passed, request } = waiter;
    waiter.waiting = null;
    while (passed.length < permits.path.length) {
      const stage = permits.path[passed.length] as Stage;
      if (!stage.isOpen) return this.#queue(waiter, stage);
      passed.push(stage.take(waiter, request));
    }
    permits.staged.delete(waiter);
    waiter.grant(new StagedPermit(this, permits, passed));
    this.#handOverSoon(waiter);
  }

  /**
   * Hands the permit over at the end of this turn. Who gets one sends at once, so the queues must be in their final
   * state, and whoever gave the permit back must be done with its own request. A promise for all grants of a turn
   * costs less than one for each.
   */
  #handOverSoon(waiter: Waiter): void {
    if (this.#granted.push(waiter) > 1 || this.#isHeld) return;
    void DONE.then(() => this.#handOver());
  }

  #handOver(): void {
    const granted = this.#granted;
    if (granted.length === 0) return;
    this.#granted = [];
    for (const next of granted) next.handOver();
  }

  #queue(waiter: Waiter, stage: Stage): void {
    const { permits, passed, request } = waiter;
    if (passed.length === 0) {
      waiter.waiting = stage.wait(waiter, request);
      return this.#fillAfterPause(permits);
    }
    // In wider limits the order of chunks would let one model of a batch hold up another one.
    waiter.waiting = stage.wait(waiter, { ...request, order: 0 });
    permits.staged.add(waiter);
  }

  /** Grants free permits of a stage to its waiters. */
  #fill(stage: Stage): void {
    for (let turn = stage.grant(); turn !== null; turn = stage.grant()) {
      // It may be of another model, with another path.
      const waiter = turn.owner;
      if (waiter === null) return stage.free(turn, 0);
      waiter.passed.push(turn);
      this.#advance(waiter);
    }
  }

  /** Frees stages `from` to `to`, the widest first, so that waiters of the widest are served first. */
  #freeStages(
    { path }: ModelPermits,
    turns: readonly StageTurn[],
    { from, to = 0, cost }: { from: number; to?: number; cost: number },
  ): void {
    for (let at = from; at >= to; at--) {
      const stage = path[at] as Stage;
      stage.free(turns[at] as StageTurn, cost);
      this.#fill(stage);
    }
  }

  /** After a cut or in a pause: takes model permits back from waiters that are not in flight yet. */
  #recall(permits: ModelPermits): void {
    const { excess } = permits;
    const recalled = excess === 0 ? [] : [...permits.staged].slice(-excess).reverse();
    for (const { passed, waiting } of recalled) {
      if (waiting !== null) permits.path[passed.length]?.queue.remove(waiting);
    }
    const vacated: StageTurn[][] = [];
    for (const waiter of recalled) {
      permits.staged.delete(waiter);
      vacated.push(waiter.passed.splice(0));
      const [own] = vacated.at(-1) ?? [];
      if (own !== undefined) permits.stage.recall(own);
      waiter.waiting = own ?? null;
    }
    // Freed last: this starts other waiters, which must see the final state of the queues.
    for (const turns of vacated) {
      this.#freeStages(permits, turns, { from: turns.length - 1, to: 1, cost: 0 });
    }
    this.#fillAfterPause(permits);
  }

  #fillAfterPause(permits: ModelPermits): void {
    if (permits.timer !== null || permits.stage.queue.size === 0) return;
    const { pausedMs } = permits;
    // The pause may have ended since the caller found the stage closed. Then nothing else would wake the waiters.
    if (pausedMs === 0) return this.#fill(permits.stage);
    permits.timer = setTimeout(() => {
      permits.timer = null;
      this.#fill(permits.stage);
      // The server may have extended the pause meanwhile, and timers may fire a little early.
      this.#fillAfterPause(permits);
    }, Math.ceil(pausedMs));
    permits.timer.unref();
  }
}

const DONE = Promise.resolve();

/** A permit that was given back. */
interface FreedPermit {
  readonly permits: ModelPermits;
  readonly turns: readonly StageTurn[];
  readonly cost: number;
}

/** What the queues of the stages need of a request. */
function permitRequestOf(request: AcquireRequest, { weight }: ModelPermits): PermitRequest {
  const { tenant, batch, priority = PRIORITY.normal, cost = 1, order = 0 } = request;
  return { tenant, batch, priority, cost: cost / weight, order };
}
